#!/usr/bin/env python3
"""The server's page in a browser: ask, stream, stop, change the sampling, look at probabilities, by
keyboard and on a phone's screen.

    serve_page.py BLOOMERY [--picture FILE]      (with playwright, and Chromium as a package)
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import serve_load


def talk(page, address, picture):
    page.goto(address)
    expect(page.locator("#state")).to_have_text("ready")
    assert "128 tokens" in page.locator("#model").inner_text()
    answers = page.locator(".message.assistant .body")

    # The keyboard alone: the field has the focus.
    page.fill("#max_tokens", "30")
    page.fill("#seed", "5")
    page.focus("#input")
    page.keyboard.type("Tell me a story")
    page.keyboard.press("Enter")
    expect(page.locator("#send")).to_be_enabled(timeout=20000)
    first = answers.nth(0).inner_text()
    assert first and re.search(r"\d+ tokens, [\d.]+ a second", page.locator("#state").inner_text())

    # The same seed gives the same text; greedy another one.
    page.click("#clear")
    assert answers.count() == 0
    page.fill("#input", "Tell me a story")
    page.click("#send")
    expect(page.locator("#send")).to_be_enabled(timeout=20000)
    assert answers.nth(0).inner_text() == first
    page.click("#clear")
    page.fill("#temperature", "0")
    page.check("#probabilities")
    page.fill("#input", "Tell me a story")
    page.click("#send")
    expect(page.locator("#send")).to_be_enabled(timeout=20000)
    assert answers.nth(0).inner_text() != first
    page.fill("#temperature", "0.7")
    page.fill("#max_tokens", "60")
    page.select_option("#mode", "text")
    page.fill("#input", "Once upon a time")
    page.click("#send")
    expect(page.locator("#send")).to_be_enabled(timeout=20000)
    tokens = page.locator(".message:last-child .token")
    assert tokens.count() > 5
    tokens.nth(4).focus()
    expect(page.locator("#alternatives")).to_be_visible()
    assert page.locator("#alternatives").inner_text().count("%") >= 5
    if picture:
        page.screenshot(path=picture)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"


def stop(page, address):
    """A text that takes long is stopped by Escape, and the server forgets it."""
    page.goto(address)
    expect(page.locator("#state")).to_have_text("ready")
    page.select_option("#mode", "text")
    page.fill("#max_tokens", "120")
    page.fill("#input", "Once")
    page.route("**/v1/completions", lambda route: route.continue_())
    page.evaluate("""() => { const read = ReadableStreamDefaultReader.prototype.read;
      ReadableStreamDefaultReader.prototype.read = function () { return new Promise(done => setTimeout(done, 100)).then(() => read.call(this)); }; }""")
    page.click("#send")
    expect(page.locator("#stop")).to_be_enabled()
    page.keyboard.press("Escape")
    expect(page.locator("#state")).to_have_text(re.compile("stopped after"))
    expect(page.locator("#send")).to_be_enabled()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--picture")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        sys.exit("serve_page: Chromium is missing: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = pathlib.Path(name)
        program = os.path.abspath(options.program)
        serve_load.make_model(program, folder, 400 if options.picture else 20)
        server = serve_load.Server(program, folder)
        address = f"http://localhost:{server.port}/"
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            problems = []
            for size in ({"width": 1100, "height": 700}, {"width": 390, "height": 780}):
                context = browser.new_context(viewport=size, has_touch=size["width"] < 500)
                page = context.new_page()
                page.on("pageerror", lambda error: problems.append(str(error)))
                page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
                if size["width"] < 500:
                    page.goto(address)
                    assert not page.locator("#temperature").is_visible(), "settings fill a small screen"
                    page.add_init_script("addEventListener('DOMContentLoaded', () => setTimeout(() => settings.open = true, 50))")
                talk(page, address, options.picture if size["width"] > 500 else None)
                stop(page, address)
                context.close()
            assert not problems, problems
        finally:
            browser.close()
            code = server.stop()
        assert code == 0
    print("serve_page: ask, stream, stop, sampling and probabilities work, on a wide and a narrow screen")


if __name__ == "__main__":
    main()
