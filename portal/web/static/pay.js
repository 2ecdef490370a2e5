// Stripe's Payment Element on the pay page. The card goes from here to Stripe and never to us.
(() => {
  const form = document.getElementById("card-form");
  if (!form) return;
  const told = form.dataset;
  const pay = document.getElementById("card-pay");
  const error = document.getElementById("card-error");

  const unavailable = () => {
    form.hidden = true;
    document.getElementById("card-unavailable").hidden = false;
  };
  if (typeof window.Stripe !== "function") return unavailable();

  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const stripe = window.Stripe(told.publishableKey, { locale: told.locale });
  const elements = stripe.elements({
    clientSecret: told.clientSecret,
    appearance: { theme: dark ? "night" : "stripe" },
  });
  const fields = elements.create("payment");
  fields.on("ready", () => { pay.disabled = false; });
  fields.on("loaderror", unavailable);
  form.hidden = false;
  fields.mount("#card-fields");

  pay.addEventListener("click", async () => {
    pay.disabled = true;
    error.hidden = true;
    // On success the browser leaves for the return page; only what went wrong comes back here.
    const answer = await stripe.confirmPayment({
      elements,
      confirmParams: { return_url: told.returnUrl },
    });
    error.textContent = answer.error ? answer.error.message : "";
    error.hidden = !answer.error;
    pay.disabled = false;
  });
})();
