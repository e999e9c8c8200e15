#!/usr/bin/env python3
"""Chat templates rendered by transformers' Jinja and by ours, on random conversations.

    build/oracle/bin/python tests/long/chat_templates.py BLOOMERY_RENDER_CHAT FOLDER [CONVERSATIONS [BROKEN]]

FOLDER has templates as *.jinja (llama.cpp's models/templates, say). Texts and what {% generation %} marks must be
equal, and where one refuses a conversation the other must. What transformers' sandbox forbids (list.append) is compared
with plain Jinja. Then BROKEN damaged templates: each ends in a text or an Error, in bounded time."""
import copy
import json
import pathlib
import random
import subprocess
import sys
import time

import jinja2
from transformers.utils import chat_template_utils

WORDS = ["sun", "Müller", "東京です。", "a\nb", "  spaced  ", "<|im_end|>", "</think>", "{{ x }}", "'q'", '"d"', "\\n", "🙂", "", "[INST]", "1 < 2 & 3", "\t"]
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "The weather\nat a place", "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Where", "enum": ["Oslo", "Köln"]}, "days": {"type": "integer", "default": 3},
        "units": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "list": {"type": "array", "items": {"type": "number"}}}, "required": ["city"]},
        "return": {"type": "string"}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}},
]


def text(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 5)))


def content(rng, parts):
    if parts and rng.random() < 0.3:
        return [{"type": "text", "text": text(rng)} for _ in range(rng.randint(1, 3))]
    return text(rng)


def conversation(rng):
    parts, tools, calls = rng.random() < 0.3, rng.random() < 0.4, rng.random() < 0.5
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": rng.choice(["system", "system", "developer"]), "content": content(rng, parts)})
    for turn in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": content(rng, parts)})
        if tools and calls and rng.random() < 0.6:
            arguments = {"city": text(rng), "days": rng.randint(0, 9), "deep": {"a": [1, 2.5, None, True]}}
            call = {"type": "function", "id": f"call{turn:05d}", "function": {"name": "weather", "arguments": arguments if rng.random() < 0.7 else json.dumps(arguments)}}
            messages.append({"role": "assistant", "content": rng.choice([None, "", text(rng)]), "tool_calls": [call] * rng.randint(1, 2)})
            messages.append({"role": "tool", "name": "weather", "tool_call_id": call["id"], "content": rng.choice([text(rng), '{"t": 3}'])})
        if turn < 3 or rng.random() < 0.5:
            answer = {"role": "assistant", "content": content(rng, parts)}
            if rng.random() < 0.3:
                answer["reasoning_content"] = text(rng)
            if rng.random() < 0.2:
                answer["content"] = "<think>\n" + text(rng) + "\n</think>\n\n" + text(rng)
            messages.append(answer)
    variables = {"messages": messages, "add_generation_prompt": rng.random() < 0.5, "bos_token": "<s>", "eos_token": "</s>"}
    variables["tools"] = TOOLS[: rng.randint(1, 2)] if tools else None
    variables["documents"] = None
    for name, values in {"enable_thinking": [True, False], "reasoning_effort": ["low", "high"], "date_string": ["26 Jul 2024"], "thinking": [True, False],
                         "tools_in_user_message": [True, False], "builtin_tools": [["wolfram"]]}.items():
        if rng.random() < 0.25:
            variables[name] = rng.choice(values)
    return variables


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def render(self, source, variables):
        self.process.stdin.write(json.dumps({"source": source, "variables": variables, "now": NOW}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


NOW = 1753600000


def theirs(source, variables):
    """The text and the spans of {% generation %}, or the exception."""
    given, variables = variables, copy.deepcopy(variables)
    try:
        compiled = chat_template_utils._compile_jinja_template(source)
        compiled.environment.globals["strftime_now"] = lambda form: time.strftime(form, time.localtime(NOW))
        return chat_template_utils._render_with_assistant_indices(
            compiled, variables.pop("messages"), variables.pop("tools"), variables.pop("documents"), variables.pop("add_generation_prompt"), **variables)
    except jinja2.exceptions.SecurityError:
        return plain(source, copy.deepcopy(given))
    except Exception as error:
        return error


def plain(source, variables):
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    sandbox = chat_template_utils._compile_jinja_template(source).environment
    environment.filters["tojson"] = sandbox.filters["tojson"]
    environment.globals.update({name: sandbox.globals[name] for name in ("raise_exception", "strftime_now")})
    try:
        return environment.from_string(source).render(**variables), []
    except Exception as error:
        return error


def spans(answer):
    marks, found, start = answer["marks"], [], None
    for place, mark in enumerate(marks + "0"):
        inside = int(mark) & 2
        if inside and start is None:
            start = place
        if not inside and start is not None:
            found.append((len(answer["text"].encode()[:start].decode()), len(answer["text"].encode()[:place].decode())))
            start = None
    return found


def merged(indices):
    result = []
    for begin, end in sorted(indices):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        elif begin < end:
            result.append((begin, end))
    return result


def compare(ours, files, conversations):
    failures, rendered, refused, worst = [], 0, 0, {}
    for file in files:
        source = file.read_text()
        for number in range(conversations):
            rng = random.Random(f"{file.name} {number}")
            variables = conversation(rng)
            expected, got = theirs(source, variables), ours.render(source, variables)
            if isinstance(expected, Exception):
                refused += 1
                fault = None if "error" in got else f"Jinja says {type(expected).__name__}: {expected}"
            else:
                rendered += 1
                fault = f"we say {got['error']}" if "error" in got else None
                if fault is None and got["text"] != expected[0]:
                    place = next((i for i, (a, b) in enumerate(zip(got["text"], expected[0])) if a != b), min(len(got["text"]), len(expected[0])))
                    fault = f"at {place}: ours {got['text'][place - 20:place + 40]!r} theirs {expected[0][place - 20:place + 40]!r}"
                if fault is None and spans(got) != merged(expected[1]):
                    fault = f"generation {spans(got)} not {merged(expected[1])}"
            if fault:
                worst.setdefault(file.name, f"conversation {number}: {fault}"[:400])
                failures.append(file.name)
    for name, fault in worst.items():
        print(f"{name} ({failures.count(name)}): {fault}")
    print(f"{len(files)} templates, {rendered} texts equal but for {len(failures)}; {refused} conversations refused by Jinja")
    return not failures


def damage(source, rng):
    pieces = list(source)
    for _ in range(rng.randint(1, 4)):
        place, width = rng.randrange(max(1, len(pieces))), rng.randint(1, 30)
        kind = rng.randrange(3)
        if kind == 0:
            del pieces[place:place + width]
        elif kind == 1:
            pieces[place:place] = pieces[rng.randrange(max(1, len(pieces))):][:width]
        else:
            pieces[place:place] = list(rng.choice(["{% for i in range(99999) %}", "{{ x * 10**9 }}", "(" * 500, "{%", "%}", "{{", "}}", "'", " | ", "[", "-", "\0", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"]))
    return "".join(pieces)


def survive(ours, files, count):
    slowest, errors = 0.0, 0
    for number in range(count):
        rng = random.Random(number)
        source = damage(rng.choice(files).read_text(), rng)
        start = time.time()
        errors += "error" in ours.render(source, conversation(rng))
        slowest = max(slowest, time.time() - start)
    print(f"{count} damaged templates: {errors} refused, slowest {slowest:.2f} s")
    return slowest < 60


def main():
    program, folder = sys.argv[1:3]
    conversations, broken = (int(n) for n in (sys.argv[3:] + ["20", "500"][len(sys.argv) - 3:])[:2])
    files = sorted(pathlib.Path(folder).glob("*.jinja"))
    ours = Ours(program)
    good = compare(ours, files, conversations)
    good = survive(ours, files, broken) and good
    sys.exit(0 if files and good else 1)


if __name__ == "__main__":
    main()
