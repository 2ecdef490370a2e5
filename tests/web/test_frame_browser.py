"""The frame in a real browser: what only a browser can prove."""

import pytest
from flask import Flask, render_template_string, request, url_for
from playwright.sync_api import Page, expect

from portal.outcome import Applied, Code, Conflict, Outcome, Refused, Standing
from portal.web import access, answer
from tests.cast import Cast
from tests.web.serving import Served

pytestmark = pytest.mark.browser
