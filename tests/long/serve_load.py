#!/usr/bin/env python3
"""A server under load, with clients that leave, send garbage or nothing.

    serve_load.py BLOOMERY [--clients 8] [--seconds 4] [--fuzzed 500] [--memory-mib 64]

Every well-formed request must get the answer that it gets alone. Needs Python's own library only.
"""
import argparse
import http.client
import json
import math
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stderr}")


def make_model(program, folder, iterations=20):
    stories, tokenizer, prefix = folder / "stories.jsonl", folder / "tokenizer", folder / "stories"
    run(program, "data", "stories", "--count", "200", "--output", stories)
    run(program, "tokenizer", "train", "--vocab-size", "400", "--input", stories, "--output", tokenizer)
    run(program, "preprocess", "--append-eod", "--input", stories, "--tokenizer", tokenizer, "--output-prefix", prefix)
    run(program, "pretrain", "--device", "cpu", "--num-threads", "1", "--num-layers", "2", "--hidden-size", "64",
        "--num-attention-heads", "4", "--seq-length", "128", "--micro-batch-size", "4", "--train-iters", str(iterations), "--lr", "4e-3",
        "--eval-iters", "0", "--data-path", f"{prefix}_text_document", "--tokenizer", tokenizer, "--save", folder / "gpt")
    (folder / "chat.jinja").write_text(TEMPLATE)
    return folder / "gpt"


class Server:
    def __init__(self, program, folder, *flags, launcher=[]):
        self.log = open(folder / "serve.log", "a+")
        self.process = subprocess.Popen(
            [*launcher, program, "serve", "--load", folder / "gpt", "--device", "cpu", "--port", "0", "--num-threads", "1",
             "--chat-template", folder / "chat.jinja", *flags], stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=folder)
        match, said = None, ""
        for line in self.process.stdout:  # a launcher may say something before
            said += line
            match = re.search(r"http://\S+:(\d+)$", line.strip())
            if match:
                break
        if not match:
            self.log.seek(0)
            sys.exit(f"the server did not start: {said}{self.log.read()}")
        self.port = int(match[1])

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers={}):
        connection = self.connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def metric(self, name):
        return float(re.search(rf"^{name}{{[^}}]*}} (\S+)$", self.ask("GET", "/metrics")[1], re.M)[1])

    def memory_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def requests():
    complete, chat = "/v1/completions", "/v1/chat/completions"
    one = {"prompt": "Once upon a time", "max_tokens": 24, "seed": 3}
    return [
        (complete, dict(one, temperature=0)),
        (complete, dict(one, temperature=0.9, top_k=30, n=3)),
        (complete, dict(one, top_p=0.8, logprobs=3, echo=True)),
        (complete, dict(one, prompt=["The", "A dog and a cat went"], min_p=0.02, frequency_penalty=0.5)),
        (complete, dict(one, prompt=[5, 6, 7, 8], repetition_penalty=1.3, logit_bias={"9": 2.5})),
        (complete, dict(one, prompt=[[5], [6, 7]], max_tokens=0, echo=True, logprobs=1)),
        (complete, dict(one, stop=["e", "."], presence_penalty=1)),
        (complete, dict(one, prompt="a " * 60, max_tokens=3)),
        (chat, {"messages": [{"role": "user", "content": "Tell me a story"}], "max_tokens": 20, "seed": 1}),
        (chat, {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "max_tokens": 9, "seed": 4,
                "logprobs": True, "top_logprobs": 2}),
        ("/api", {"prompts": ["Once", "The little"], "tokens_to_generate": 12, "random_seed": 5, "logprobs": True}),
        ("/api", {"prompts": ["Once"], "tokens_to_generate": 6, "beam_width": 3}),
    ]


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4)
    if isinstance(a, dict):
        keys = set(a) - {"id", "created"}
        return isinstance(b, dict) and keys == set(b) - {"id", "created"} and all(same(a[k], b[k]) for k in keys)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a == b


class Busy(Exception):
    """Too many requests wait: ask again."""


def streamed(connection, path, body):
    """The texts of a streamed answer by choice, and why they ended."""
    connection.request("POST", path, json.dumps(dict(body, stream=True)))
    response = connection.getresponse()
    if response.status == 503:
        response.read()
        raise Busy
    assert response.status == 200, response.read()
    events = [line[6:] for line in response.read().decode().split("\n\n") if line.startswith("data: ")]
    assert events[-1] == "[DONE]", events[-1]
    texts, ends = {}, {}
    for event in map(json.loads, events[:-1]):
        for choice in event["choices"]:
            text = choice["text"] if "text" in choice else choice["delta"].get("content", "")
            texts[choice["index"]] = texts.get(choice["index"], "") + text
            ends[choice["index"]] = choice["finish_reason"] or ends.get(choice["index"])
    return texts, ends


def check_stream(found, expected, problems, body):
    texts, ends = found
    for choice in expected["choices"]:
        text = choice["text"] if "text" in choice else choice["message"]["content"]
        if texts.get(choice["index"]) != text or ends.get(choice["index"]) != choice["finish_reason"]:
            problems.append(f"{body}: streamed {texts} {ends}, alone {choice}")


GARBAGE = [
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n{",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n\xff\xfe{}",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 70000 + b"\r\n\r\n",
]


def misbehave(server, rng):
    """One of the ways in which clients fail."""
    kind = rng.randrange(3)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        if kind == 0:
            client.sendall(rng.choice(GARBAGE))
            client.settimeout(0.2)
            try:
                client.recv(1000)
            except OSError:
                pass
        elif kind == 1:  # half a request, then nothing
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"pro")
            time.sleep(rng.random() * 0.2)
        else:  # leaves in the middle of the answer
            body = json.dumps({"prompt": "Once", "max_tokens": 100, "stream": rng.random() < 0.5, "ignore_eos": True}).encode()
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(rng.random() * 0.05)


def answers(server):
    found = []
    for path, body in requests():
        status, text = server.ask("PUT" if path == "/api" else "POST", path, body)
        assert status == 200, (body, text)
        found.append(json.loads(text))
    return found


def load(server, clients, seconds):
    cases, alone = requests(), answers(server)
    problems, counts, end = [], [0, 0], time.time() + seconds

    def client(number):
        rng = random.Random(number)
        connection = server.connect()
        while time.time() < end and not problems:
            if rng.random() < 0.1:
                misbehave(server, rng)
                counts[1] += 1
                continue
            which = rng.randrange(len(cases))
            path, body = cases[which]
            try:
                if path != "/api" and rng.random() < 0.4:
                    check_stream(streamed(connection, path, body), alone[which], problems, body)
                else:
                    connection.request("PUT" if path == "/api" else "POST", path, json.dumps(body))
                    response = connection.getresponse()
                    text = response.read().decode()
                    if response.status == 503:
                        raise Busy
                    if response.status != 200 or not same(json.loads(text), alone[which]):
                        problems.append(f"{body}: {response.status} {text}\nalone {alone[which]}")
                counts[0] += 1
            except Busy:
                time.sleep(0.05)
            except Exception as error:  # a well-formed request has an answer
                problems.append(f"{body}: {error!r}")
        connection.close()

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not problems, "\n".join(problems[:3])
    return counts


def mutated(rng, body):
    """A body with some bytes changed, or a field replaced by something else."""
    if rng.random() < 0.5:
        odd = [None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), "", "\ud800", "x" * 5000, [], {}, [[]], {"a": {}}, [None], [2**31], "\0"]
        changed = dict(body)
        for _ in range(rng.randint(1, 3)):
            changed[rng.choice([*body, "stop", "seed", "n", "logprobs", "stream_options", "beam_width"])] = rng.choice(odd)
        return json.dumps(changed).encode()
    data = bytearray(json.dumps(body).encode())
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(data))
        data[place:place + rng.randint(0, 3)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 3)))
    return bytes(data)


def fuzz(server, count):
    """Requests that are wrong in some way get an answer that says so, and never a fault of the server's."""
    rng, cases = random.Random(11), requests()
    connection = server.connect()
    for _ in range(count):
        path, body = rng.choice(cases)
        data = mutated(rng, dict(body, **{"tokens_to_generate" if path == "/api" else "max_tokens": 1}))
        connection.request("PUT" if path == "/api" else "POST", path, data)
        response = connection.getresponse()
        text = response.read()
        assert response.status in (200, 400, 404, 413), (response.status, data, text)
        assert response.status == 200 or b"message" in text, (data, text)
    connection.close()


def check_refusals(server):
    def post(body, path="/v1/completions", **headers):
        connection = server.connect()
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def error(status, fragment, body, **more):
        found, text = post(body, **more)
        assert found == status and fragment in json.loads(text)["error"]["message"], (body[:80], found, text)

    error(400, "valid JSON", b'{"prompt": "\xff"}')
    error(400, "nested", "[" * 1000 + "]" * 1000)
    error(400, "prompt", "{}")
    error(400, "n must be", json.dumps({"prompt": "a", "n": 10**30}))
    error(400, "max_tokens", json.dumps({"prompt": "a", "max_tokens": -1}))
    error(400, "maximum context length", json.dumps({"prompt": "a", "max_tokens": 10000}))
    error(400, "Token id 400", json.dumps({"prompt": [400]}))
    error(400, "suffix", json.dumps({"prompt": "a", "suffix": "b"}))
    error(400, "messages", json.dumps({"messages": []}), path="/v1/chat/completions")
    error(404, "no model", json.dumps({"prompt": "a", "model": "gpt-9"}))
    error(404, "there is no", "", path="/v1/nothing")
    error(413, "bytes", b"x" * (5 << 20))
    error(403, "pages of", json.dumps({"prompt": "a"}), Origin="http://evil.example")
    error(403, "known as localhost", json.dumps({"prompt": "a"}), Host="evil.example")
    assert server.ask("GET", "/v1/completions")[0] == 405
    assert "<title>" in server.ask("GET", "/")[1]
    for body, message in [({}, "prompts argument required"), ({"prompts": []}, "prompts is empty"),
                          ({"prompts": ["a"], "top_k": 2, "top_p": 0.5}, "cannot set both top-k and top-p samplings."),
                          ({"prompts": ["a"], "tokens_to_generate": 0}, "tokens_to_generate=0 implies logprobs should be True"),
                          ({"prompts": ["a"], "tokens_to_generate": 9999}, "Length of prompt + tokens_to_generate longer than allowed"),
                          ({"prompts": [""]}, "Empty prompts require add_BOS=true"),
                          ({"prompts": ["a", "b"], "beam_width": 2}, "When doing beam_search, batch size must be 1")]:
        status, text = server.ask("PUT", "/api", body)
        assert status == 400 and json.loads(text) == {"message": message}, (body, status, text)


def check_leaving(server):
    """Nothing is computed for who left, whole answer or stream."""
    for stream in (False, True):
        body = json.dumps({"prompt": "Once", "max_tokens": 110, "n": 8, "stream": stream, "ignore_eos": True}).encode()
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.02)
        client.close()
        end = time.time() + 5
        while server.metric("vllm:num_requests_running") + server.metric("vllm:num_requests_waiting") > 0:
            assert time.time() < end, "a client left and its text is still being made"
            time.sleep(0.02)


def check_drain(server):
    """What is being answered at SIGTERM is answered; the exit code is 0."""
    connection, result = server.connect(), []
    body = {"prompt": "Once", "max_tokens": 100, "n": 8, "seed": 1, "ignore_eos": True}
    thread = threading.Thread(target=lambda: result.append(streamed(connection, "/v1/completions", body)))
    thread.start()
    while server.metric("vllm:num_requests_running") == 0 and thread.is_alive():
        time.sleep(0.002)
    code = server.stop()
    thread.join()
    assert code == 0, f"exit code {code}"
    assert len(result[0][0]) == 8 and set(result[0][1].values()) == {"length"}, result


def check_keys(program, folder):
    (folder / "key").write_text("secret-key\n")
    open_to_all = subprocess.run([program, "serve", "--load", folder / "gpt", "--host", "0.0.0.0", "--port", "0"],
                                 capture_output=True, text=True)
    assert open_to_all.returncode == 2 and "--api-key-file" in open_to_all.stderr, open_to_all.stderr
    server = Server(program, folder, "--host", "0.0.0.0", "--api-key-file", folder / "key")
    assert server.ask("GET", "/health")[0] == 200
    assert server.ask("GET", "/v1/models")[0] == 401
    assert server.ask("GET", "/v1/models", headers={"Authorization": "Bearer secret-kez"})[0] == 401
    assert server.ask("GET", "/v1/models", headers={"Authorization": "Bearer secret-key"})[0] == 200
    assert server.stop() == 0


def check_ranks(program, folder, server):
    """A model that ranks divide gives the answers of one rank; what hurts one rank ends all."""
    alone = answers(server)
    for ranks in (2, 4):
        divided = Server(program, folder, "--tensor-model-parallel-size", str(ranks))
        for (path, body), expected, found in zip(requests(), alone, answers(divided)):
            assert same(found, expected), f"{ranks} ranks: {body}: {found}\none: {expected}"
        if ranks == 2:
            load(divided, 4, 1)
            check_leaving(divided)
        check_drain(divided)
    command = [program, "generate", "--load", folder / "gpt", "--device", "cpu", "--num-threads", "1", "--prompt", "Once upon",
               "--out-seq-length", "12", "--top-k", "20"]
    run(*command, "--genfile", folder / "one")
    run(program, "launch", "-n", "2", *command, "--tensor-model-parallel-size", "2", "--genfile", folder / "two")
    one, two = (json.loads((folder / name).read_text()) for name in ("one", "two"))
    assert same(one, two), (one, two)
    mistake = subprocess.run([program, "launch", "-n", "2", *command], capture_output=True, text=True)
    said = mistake.stdout + mistake.stderr
    assert mistake.returncode == 2 and said.count("give --tensor-model-parallel-size 2") == 1, said


def check_lost_rank(program, folder):
    """A server of two processes, of which the second dies while nobody asks for anything."""
    server = Server(program, folder, "--tensor-model-parallel-size", "2", launcher=[program, "launch", "-n", "2"])
    assert server.ask("POST", "/v1/completions", {"prompt": "Once", "max_tokens": 4})[0] == 200
    children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    second = [child for child in children if b"LOCAL_RANK=1" in pathlib.Path(f"/proc/{child}/environ").read_bytes()]
    os.kill(int(second[0]), signal.SIGKILL)
    code = server.process.wait(timeout=60)
    assert code not in (0, None), f"exit code {code}"


def check_crowd(program, folder, server, clients=300):
    """Nobody is turned away for being one of hundreds; a second server at the port is."""
    found = []

    def client(number):
        body = {"prompt": "Once", "max_tokens": 8, "seed": number, "stream": number % 2 == 0}
        found.append(server.ask("POST", "/v1/completions", body)[0])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * clients, found
    second = subprocess.run([program, "serve", "--load", folder / "gpt", "--device", "cpu", "--port", str(server.port)],
                            capture_output=True, text=True, timeout=60)
    assert second.returncode == 2 and "another --port" in second.stderr, second


def check_generate(program, folder, server):
    """The text of `bloomery generate` with the same seed."""
    line = subprocess.run([program, "generate", "--load", folder / "gpt", "--device", "cpu", "--num-threads", "1", "--prompt",
                           "Once upon a time", "--num-samples", "2", "--out-seq-length", "24", "--top-k", "20", "--seed", "7",
                           "--json"], capture_output=True, text=True, check=True).stdout
    texts = [json.loads(row)["text"] for row in line.splitlines()]
    status, text = server.ask("POST", "/v1/completions", {"prompt": "Once upon a time", "n": 2, "max_tokens": 24, "top_k": 20, "seed": 7})
    assert [choice["text"] for choice in json.loads(text)["choices"]] == texts, (texts, text)


def check_chat(program, folder, server):
    """`bloomery chat` says what the server says to the same conversation."""
    def served(*messages):
        body = {"messages": [dict(zip(("role", "content"), one)) for one in messages], "max_tokens": 8, "temperature": 0}
        return json.loads(server.ask("POST", "/v1/chat/completions", body)[1])["choices"][0]["message"]["content"]

    lines = ["/set temperature 0", "/set max-new-tokens 8", "/bad", "Hello", "/undo", "Once", "/set top-p x", "/new", "/system Be brief",
             "And then?", "/exit", "never read"]
    result = subprocess.run([program, "chat", "--load", folder / "gpt", "--device", "cpu", "--num-threads", "1", "--chat-template",
                             folder / "chat.jinja"], input="\n".join(lines), capture_output=True, text=True, check=True)
    expected = [served(("user", "Hello")), served(("user", "Once")), served(("system", "Be brief"), ("user", "And then?"))]
    assert result.stdout == "".join(text + "\n" for text in expected), (result.stdout, expected)
    assert "/bad is not a command" in result.stderr and "needs a number" in result.stderr, result.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--fuzzed", type=int, default=500, help="requests with changes")
    parser.add_argument("--memory-mib", type=float, default=64, help="that the server may grow by")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_model(program, folder)
        check_keys(program, folder)
        server = Server(program, folder)
        try:
            check_refusals(server)
            check_generate(program, folder, server)
            check_chat(program, folder, server)
            check_crowd(program, folder, server)
            check_ranks(program, folder, server)
            check_lost_rank(program, folder)
            check_leaving(server)
            fuzz(server, options.fuzzed)
            load(server, 4, 1)  # buffers get their size
            before = server.memory_mib()
            answered, broken = load(server, options.clients, options.seconds)
            growth = server.memory_mib() - before
            assert growth < options.memory_mib, f"memory grew by {growth:.0f} MiB"
            check_drain(server)
        except BaseException:
            server.process.kill()
            server.log.seek(0)
            sys.stderr.write(server.log.read()[-3000:])
            raise
    print(f"serve_load: {answered} answers equal to those alone, {broken} broken clients, {growth:.1f} MiB more memory")


if __name__ == "__main__":
    main()
