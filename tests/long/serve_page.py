#!/usr/bin/env python3
"""The server's page in a browser: ask, stream, stop, change the sampling, look at probabilities, by
keyboard and on a phone's screen.

    serve_page.py BLOOMERY [--picture FILE]      (with playwright, and Chromium as a package)
"""
import argparse
import json
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


def ask(page, text):
    page.fill("#input", text)
    page.click("#send")
    expect(page.locator("#send")).to_be_enabled(timeout=20000)


def first_message(page, address):
    """With the settings as they are; a long prompt gets as many tokens as there is room for."""
    page.goto(address)
    expect(page.locator("#state")).to_have_text("ready")
    assert int(page.input_value("#max_tokens")) <= 64, "half of what the model has"
    ask(page, "Tell me a story")
    assert page.locator(".message.assistant .body").inner_text()
    page.click("#clear")
    ask(page, "Once upon a time there was a little dog. " * 5)
    assert page.locator(".message.error").count() == 0, page.locator(".message.error").inner_text()
    assert page.locator(".message.assistant .body").inner_text()


def event(text, *tokens):
    content = [{"token": token, "logprob": -0.5, "top_logprobs": [{"token": token, "logprob": -0.5}]} for token in tokens]
    return {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": content}, "finish_reason": None}]}


def conversations(page, address):
    """Answers of our own: a character of several tokens, an error, a conversation that is ended. Questions that
    failed or were forgotten are not asked again."""
    asked, answers = [], []

    def answer(route):
        asked.append([one["content"] for one in route.request.post_data_json["messages"]])
        status, events = answers.pop(0)
        if status == 400:
            return route.fulfill(status=400, json={"error": {"message": "no", "code": None}})
        route.fulfill(content_type="text/event-stream", body="".join(f"data: {json.dumps(one)}\n\n" for one in events) + "data: [DONE]\n\n")

    page.goto(address)
    expect(page.locator("#state")).to_have_text("ready")
    page.check("#probabilities")
    page.route("**/v1/chat/completions", answer)
    smile = [event("", "bytes:\\xf0\\x9f"), event("\U0001F642", "bytes:\\x99\\x82"), event("!", "!")]
    answers[:] = [(200, smile), (400, []), (200, smile), (200, smile)]
    ask(page, "one")
    assert page.locator(".message.assistant .body").inner_text() == "\U0001F642!"
    assert page.locator(".token").all_inner_texts() == ["\U0001F642", "!"]
    ask(page, "two")
    expect(page.locator(".message.error")).to_have_text("errorno")
    ask(page, "three")
    page.click("#clear")
    ask(page, "four")
    assert asked == [["one"], ["one", "\U0001F642!", "two"], ["one", "\U0001F642!", "three"], ["four"]], asked
    page.unroute("**/v1/chat/completions")
    page.evaluate("""() => { const read = ReadableStreamDefaultReader.prototype.read;
      ReadableStreamDefaultReader.prototype.read = function () { return new Promise(done => setTimeout(done, 500)).then(() => read.call(this)); }; }""")
    page.fill("#input", "five")
    page.click("#send")
    page.click("#clear")
    expect(page.locator("#send")).to_be_enabled()
    assert page.evaluate("messages.length") == 0 and page.locator(".message").count() == 0


def stop(page, address):
    """A text that takes long is stopped by Escape, and the server forgets it."""
    page.goto(address)
    expect(page.locator("#state")).to_have_text("ready")
    page.select_option("#mode", "text")
    page.fill("#max_tokens", "120")
    page.fill("#input", "Once")
    page.route("**/v1/completions", lambda route: route.continue_())
    page.evaluate("""() => { const read = ReadableStreamDefaultReader.prototype.read;
      ReadableStreamDefaultReader.prototype.read = function () { return new Promise(done => setTimeout(done, 500)).then(() => read.call(this)); }; }""")
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
            for size in ({"width": 1280, "height": 700}, {"width": 390, "height": 780}):
                context = browser.new_context(viewport=size, has_touch=size["width"] < 500)
                page = context.new_page()
                page.on("pageerror", lambda error: problems.append(str(error)))
                page.on("console", lambda line: problems.append(line.text) if line.type == "error" and "status of 400" not in line.text else None)
                page.goto(address)
                for name in ("#settings summary", "#input", "#clear") + (("#probabilities", "#key") if size["width"] > 500 else ()):
                    box = page.locator(name).bounding_box()
                    assert box and box["y"] >= 0 and box["y"] + box["height"] <= size["height"], (name, box)
                if size["width"] < 500:
                    assert not page.locator("#temperature").is_visible(), "settings fill a small screen"
                    page.add_init_script("addEventListener('DOMContentLoaded', () => setTimeout(() => settings.open = true, 50))")
                talk(page, address, options.picture if size["width"] > 500 else None)
                stop(page, address)
                first_message(page, address)
                conversations(page, address)
                context.close()
            assert not problems, problems
        finally:
            browser.close()
            code = server.stop()
        assert code == 0
    print("serve_page: ask, stream, stop, sampling and probabilities work, on a wide and a narrow screen")


if __name__ == "__main__":
    main()
