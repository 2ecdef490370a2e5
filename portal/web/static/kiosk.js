// A tablet that nobody touches goes back to its first page, over this one, so that no button leads
// here again. While something is under way outside, it looks again by itself.
"use strict";

const clock = document.getElementById("kiosk-clock");

if (clock) {
  const { start, seconds, polls } = clock.dataset;
  const TOUCHED = "monban-touched";
  let idle;

  const wait = () => {
    clearTimeout(idle);
    const left = Number(sessionStorage.getItem(TOUCHED)) + Number(seconds) * 1000 - Date.now();
    idle = setTimeout(() => location.replace(start), Math.max(0, left));
  };
  const touched = () => {
    sessionStorage.setItem(TOUCHED, String(Date.now()));
    wait();
  };

  for (const event of ["pointerdown", "keydown", "scroll"]) {
    addEventListener(event, touched, { passive: true });
  }
  // A page that only looked again was not touched.
  const [came] = performance.getEntriesByType("navigation");
  if (polls && came && came.type === "reload") wait();
  else touched();
  if (polls) setTimeout(() => location.reload(), Number(polls) * 1000);
}

// A page that the browser had kept is not shown as it was.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
