"""A small agent program of others: it asks an endpoint, runs what it is told, and knows nothing of us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from environments.backends import BACKENDS
from prchain.core.settings import Settings
from trajectories.programs.spec import Programs

PROGRAM = r"""
import json, os, signal, subprocess, sys, threading, time, urllib.request

base_url, token, model, task, mode, session, turn = sys.argv[1:]
words = open(task).read()
kept = session + "/said.json"
bash = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


def ask(messages, tools=True):
    body = {"model": model, "messages": messages, **({"tools": [bash]} if tools else {})}
    if mode == "wishes":
        body |= {"model": "dearest", "temperature": 1.7, "top_p": 0.9, "max_tokens": 9000}
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    request = urllib.request.Request(base_url + "/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]


print("toy agent: hello")
if mode == "crashes":
    sys.exit("out of ideas; my key is " + "ghp_" + "x8Kq2LmN5vRt7WzB1cYd" + "4FgH6jPs9aQe0uIo")
if mode == "says nothing":
    sys.exit(0)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        while True:
            open("grown", "a").write("x")
            time.sleep(0.02)
start = [{"role": "system", "content": "You are a toy. Today is 2026-11-28."}]
if turn == "next":
    start = json.load(open(kept))
    if mode == "forgets":
        start[1]["content"] = "You did much of this: " + start[1]["content"]
        start[2:] = [{"role": "assistant", "content": "I did."}]
messages = start + [{"role": "user", "content": "Please do this:\n" + words}]
if mode == "titles":
    beside = threading.Thread(target=ask, args=([{"role": "user", "content": "A title, please: " + words}], False))
    beside.start()
while True:
    reply = ask(messages)
    messages.append({name: it for name, it in reply.items() if it is not None})
    os.makedirs(session, exist_ok=True)
    json.dump(messages, open(kept, "w"))
    calls = reply.get("tool_calls") or []
    if not calls or calls[0]["function"]["name"] == "submit":
        break
    for call in calls:
        command = json.loads(call["function"]["arguments"])["command"]
        ran = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": ran.stdout})
    if mode == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "stumbles":
        sys.exit("I stumbled")
    if mode == "hangs":
        time.sleep(1000)
    if len(messages) == {"compacts": 4, "compacts later": 6, "compacts last": 8}.get(mode):
        messages = start + [{"role": "user", "content": "You have begun. Go on with this:\n" + words}]
        mode = "compacted"
if mode == "titles":
    beside.join()
"""


def write_toy(folder: Path, mode: str = "works", *, resumes: bool = True, mark: str = "", **more: Any) -> None:
    """Put the agent ``toy`` into a user's folder of agents below `folder`. `mark` tells its install from others."""
    (folder / "agents").mkdir(exist_ok=True)
    fields = {"help": "a toy", "version": "1.0", "licence": "MIT", **more}
    lines = [f'{name} = "{value}"' for name, value in fields.items()]
    lines += ['install = """\ncat > agent.py <<\'END\'\n' + PROGRAM.replace("\\", "\\\\") + f'\nEND\n{mark}"""']
    words = f"{{folder}}/agent.py {{base_url}} {{token}} {{model}} {{task}} '{mode}' {{session}}"
    lines += [f'command = "exec python3 -I {words} first"', "[variables]", 'TOY = "{home}"']
    if resumes:
        lines += ["[next]", f'command = "exec python3 -I {words} next"']
    (folder / "agents" / "toy.toml").write_text("\n".join(lines) + "\n")


def install_toy(folder: Path, mode: str = "works", *, backend: str = "unsafe-local", **more: Any) -> None:
    """Put the agent ``toy`` into a user's folder of agents below `folder`, as `write_toy`, and install it there."""
    write_toy(folder, mode, **more)
    settings = Settings(data_dir=folder / "data", agents_dir=folder / "agents")
    program = Programs(folder / "agents")["toy"].program
    if not BACKENDS[backend].has_program(program, settings):
        BACKENDS[backend].install_program(program, settings)
