"""What the documents say is what the code does."""

from sandbox import states_page


def test_the_page_of_state_tables_is_the_machines() -> None:
    assert states_page.PAGE.read_text(encoding="utf-8") == states_page.page()
