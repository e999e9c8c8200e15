#!/usr/bin/env python3
"""Tokens per second that `bloomery serve` streams to many clients at once, beside what its engine reaches without HTTP.

    bench/serve_rate.py BLOOMERY --load FOLDER --vocab-size N [--size 124M] [--streams 64] [--prompt-length 64] [--new-tokens 256]
                        [--rounds 3] [--flags "--device cuda --dtype bf16"] [--serve-flags "--prompt-piece 1024"]

FOLDER is a model of the shape that `bench generate --size` has; texts are numbers of tokens. Clients are processes that read raw
bytes, so that they do not hold the server up. Also the time to the first token of a prompt of 1,000 tokens, alone, beside that of
one forward pass in `bench generate`. Needs Python's own library only."""
import argparse
import json
import multiprocessing
import random
import re
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time


def request(port, prompt, new_tokens):
    body = json.dumps({"prompt": prompt, "max_tokens": new_tokens, "stream": True, "ignore_eos": True, "temperature": 0.8,
                       "top_k": 50, "seed": 1, "stream_options": {"include_usage": True}}).encode()
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return client


def read_answer(client):
    """Seconds of the clock when the first piece came, and the number of tokens."""
    first, received = None, b""
    while b"data: [DONE]" not in received:
        piece = client.recv(1 << 16)
        if not piece:
            sys.exit(f"serve_rate.py: the answer ended: {received[-300:]!r}")
        received += piece
        if first is None and b"data: " in received:
            first = time.perf_counter()
    client.close()
    return first, int(re.search(rb'"completion_tokens": ?(\d+)', received)[1])


def ask(arguments):
    port, prompts, new_tokens = arguments
    clients = [request(port, prompt, new_tokens) for prompt in prompts]
    return sum(read_answer(client)[1] for client in clients)


def prompts_of(o, count, length):
    return [[random.randrange(o.vocab_size) for _ in range(length)] for _ in range(count)]


def streamed_rate(o, port, pool):
    each = max(1, o.streams // o.processes)
    prompts = prompts_of(o, o.streams, o.prompt_length)
    parts = [(port, prompts[i:i + each], o.new_tokens) for i in range(0, o.streams, each)]
    start = time.perf_counter()
    tokens = sum(pool.map(ask, parts, chunksize=1))
    seconds = time.perf_counter() - start
    if tokens != o.streams * o.new_tokens:
        sys.exit(f"serve_rate.py: {tokens} tokens instead of {o.streams * o.new_tokens}")
    return tokens / seconds


def first_token(o, port):
    """Milliseconds to the first piece of an answer to 1,000 tokens."""
    times = []
    for prompt in prompts_of(o, 11, 1000):
        start = time.perf_counter()
        first, _ = read_answer(request(port, prompt, 2))
        times.append((first - start) * 1e3)
    return statistics.median(times)


def bench(o, batch, prompt, new_tokens):
    sampling = ["--temperature", "0.8", "--top-k", "50"]
    command = [o.program, "bench", "generate", "--size", o.size, "--batch-size", str(batch), "--prompt-length", str(prompt),
               "--out-seq-length", str(new_tokens), *sampling, *shlex.split(o.flags)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--load", required=True)
    parser.add_argument("--vocab-size", type=int, required=True)
    parser.add_argument("--size", default="124M")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--prompt-length", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flags", default="--device cuda --dtype bf16")
    parser.add_argument("--serve-flags", default="")
    return parser.parse_args()


def main():
    o = options()
    random.seed(1)
    server = subprocess.Popen(
        [o.program, "serve", "--load", o.load, "--port", "0", "--max-sequences", str(o.streams), "--max-connections", "1000",
         "--tokenizer-type", "NullTokenizer", "--vocab-size", str(o.vocab_size), *shlex.split(o.flags + " " + o.serve_flags)],
        stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)$", server.stdout.readline().strip())[1])
    with multiprocessing.Pool(o.processes) as pool:
        streamed_rate(o, port, pool)  # plans and graphs are made
        rates = [streamed_rate(o, port, pool) for _ in range(o.rounds)]
    first = first_token(o, port)
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=60)
    engine = bench(o, o.streams, o.prompt_length, o.new_tokens)
    alone = float(re.search(r"with it (\d+) tokens/s", engine)[1])
    forward = float(re.search(r"first token after ([\d.]+) ms", bench(o, 1, 1000, 2))[1])
    rate = statistics.median(rates)
    print(f"{o.streams} streams of {o.prompt_length} + {o.new_tokens} tokens: {rate:.0f} tokens/s over HTTP, {alone:.0f} without: "
          f"{rate / alone:.2f}")
    print(f"first token of 1,000: {first:.2f} ms over HTTP, a forward pass {forward:.2f} ms: {first / forward:.2f}")


if __name__ == "__main__":
    main()
