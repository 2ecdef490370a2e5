"""A document as PDF: on A4, or on a roll of 80 mm that is as long as it has to be."""

import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fpdf import FPDF
from fpdf.enums import MethodReturnValue, XPos, YPos

if TYPE_CHECKING:
    from portal.web.paper import Line, Paper, Sheet

FONT = Path(__file__).parent / "static" / "vendor" / "NotoSansJP-Regular.ttf"
HEIGHT = 0.55
"""Of a line of text, in mm for each point of its size."""
LONG = 3000.0
"""Longer than any roll, in mm: it is written once to see how long it is."""

# fontTools tells in passing what it leaves out of a font.
logging.getLogger("fontTools").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class Headings:
    number: str
    what: str
    rate: str
    amount: str
    issuer: str


@dataclass(frozen=True, slots=True)
class Measure:
    """Of a sheet, in mm and points."""

    width: float
    height: float
    margin: float
    title: float
    large: float
    text: float


SHEETS = {"a4": Measure(210, 297, 22, 20, 18, 10.5), "roll": Measure(80, LONG, 4, 14, 14, 8.5)}


def write(paper: "Paper", sheet: "Sheet", headings: Headings, lang: str) -> bytes:
    measure = SHEETS[sheet]
    drawn = _Drawing(measure, measure.height, lang)
    drawn.draw(paper, headings)
    if sheet == "roll":
        length = drawn.get_y() + measure.margin
        drawn = _Drawing(measure, length, lang)
        drawn.draw(paper, headings)
    return bytes(drawn.output())


class _Drawing(FPDF):
    def __init__(self, measure: Measure, height: float, lang: str) -> None:
        super().__init__(unit="mm", format=(measure.width, height))
        self.measure = measure
        self.set_margin(measure.margin)
        self.set_auto_page_break(measure.height < LONG, measure.margin)
        self.add_font("noto", fname=str(_font()))
        self.set_lang(lang)
        self.add_page()

    def draw(self, paper: "Paper", headings: Headings) -> None:
        measure = self.measure
        self.set_title(f"{paper.title} {paper.number}")
        self._line(paper.title, measure.title, "C")
        if paper.again:
            self._line(paper.again, measure.text, "C")
        self._line(f"{headings.number} {paper.number}", measure.text, "R")
        self._line(paper.day, measure.text, "R")
        self.ln(2)
        if paper.addressee:
            self._line(paper.addressee, measure.large * 0.85, "L")
            self._rule()
        self._line(paper.amount, measure.large * 1.3, "C")
        self._line(f"{headings.what}: {paper.subject}", measure.text, "L")
        for note in paper.notes:
            self._line(note, measure.text, "L")
        self.ln(2)
        self._rows(paper.lines)
        self._rows(paper.totals)
        if paper.paid:
            self._line(paper.paid_how, measure.text, "L")
            self._rows(paper.paid)
        self._line(headings.issuer, measure.text, "L")
        for line in paper.issuer:
            self._line(line, measure.text, "L")

    def _line(self, text: str, size: float, align: str) -> None:
        """Broken where it is too long: between words, and within one that is longer than a line."""
        self.set_font("noto", size=size)
        self.multi_cell(0, size * HEIGHT, text, align=align, new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def _rows(self, lines: "list[Line]") -> None:
        """Words on the left, an amount that never breaks on the right."""
        self._rule()
        for line in lines:
            self._row(line)
        self.ln(2)

    def _row(self, line: "Line") -> None:
        """On one sheet as a whole."""
        size = self.measure.text
        self.set_font("noto", size=size)
        step = size * HEIGHT
        amount = self.get_string_width(line.amount) + 3
        rate = self.get_string_width(line.rate) + 3 if line.rate else 0
        room = self.epw - amount - rate
        high = self.multi_cell(
            room, step, line.words, align="L", dry_run=True, output=MethodReturnValue.HEIGHT
        )
        if self.will_page_break(float(high)):  # type: ignore[arg-type]
            self.add_page()
        top = self.get_y()
        self.multi_cell(room, step, line.words, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        below = self.get_y()
        self.set_xy(self.l_margin + room, top)
        if rate:  # a cell of no width is as wide as the sheet
            self.cell(rate, step, line.rate, align="R")
        self.cell(amount, step, line.amount, align="R")
        self.set_xy(self.l_margin, below)

    def _rule(self) -> None:
        self.ln(0.8)
        self.line(self.l_margin, self.get_y(), self.w - self.r_margin, self.get_y())
        self.ln(0.8)


@lru_cache(maxsize=1)
def _font() -> Path:
    if not FONT.exists():
        raise FileNotFoundError(f"{FONT} is not there: `make setup` fetches it")
    return FONT
