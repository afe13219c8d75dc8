"""mini-swe-agent as an agent program: its own loop, shell, tool and messages, without its clients of models.

Those and its command line want packages that the tests are without (LiteLLM, tenacity, prompt_toolkit), and take
seconds to load; what ships has them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from environments.backends import BACKENDS
from prchain.core.settings import Settings
from tests.trajectories.miniworld import FOLDER, START
from trajectories.programs.spec import Programs

NAME = "mini-program"

SYSTEM, TASK = "You use the tool bash.", "Please solve this issue: {{task}}"
"""Its own are too long for the model of test-llm."""
NOT_RUN = "Nothing is run here."

_PROGRAM = f"""
import json, sys, types, urllib.error, urllib.request
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.utils import actions_toolcall as calls
from pydantic import BaseModel

base_url, token, name, task, runs = sys.argv[1:]


class Config(BaseModel):
    model_name: str = name


class Model:
    config = Config()

    def query(self, messages):
        sent = [{{key: it for key, it in each.items() if key != "extra"}} for each in messages]
        body = json.dumps({{"model": name, "messages": sent, "tools": [calls.BASH_TOOL]}}).encode()
        headers = {{"Authorization": "Bearer " + token, "Content-Type": "application/json"}}
        asked = urllib.request.Request(base_url + "/chat/completions", body, headers)
        try:
            with urllib.request.urlopen(asked, timeout=240) as answer:
                message = json.load(answer)["choices"][0]["message"]
        except urllib.error.HTTPError as error:
            sys.exit("refused: " + error.read().decode())
        told = json.dumps(message.get("tool_calls") or [])
        told = json.loads(told, object_hook=lambda fields: types.SimpleNamespace(**fields))
        actions = calls.parse_toolcall_actions(told, format_error_template="{{{{ error }}}}")
        return message | {{"extra": {{"actions": actions, "cost": 0.0}}}}

    def format_message(self, **message):
        return message

    def format_observation_messages(self, message, outputs, variables=None):
        template = "{{{{ output.returncode }}}}: {{{{ output.output }}}}{{{{ output.exception_info }}}}"
        actions = message["extra"]["actions"]
        return calls.format_toolcall_observation_messages(
            actions=actions, outputs=outputs, observation_template=template, template_vars=variables
        )

    def get_template_vars(self, **_):
        return self.config.model_dump()

    def serialize(self):
        return {{}}


class Idle(LocalEnvironment):
    def execute(self, action, **_):
        return {{"output": "{NOT_RUN}", "returncode": 0, "exception_info": ""}}


environment = LocalEnvironment() if runs == "runs" else Idle()
agent = DefaultAgent(Model(), environment, system_template="{SYSTEM}", instance_template="{TASK}")
print("mini-swe-agent ended:", agent.run(open(task).read())["exit_status"])
"""


def install_mini(folder: Path, *, runs: bool = True) -> None:
    """Put the agent into a user's folder of agents below `folder`, and install it there, for commands of this machine.
    Without `runs` it runs none of the commands that its model calls for."""
    (folder / "agents").mkdir(exist_ok=True)
    words = f"{{base_url}} {{token}} {{model}} {{task}} {'runs' if runs else 'idle'}"
    lines = ['help = "mini-swe-agent"', 'version = "2"', 'licence = "MIT"']
    lines += [f"install = '''\ncat > run.py <<'END'\n{_PROGRAM}\nEND\n'''"]
    lines += [f'command = "exec {sys.executable} {{folder}}/run.py {words}"', "[variables]"]
    lines += [f'PYTHONPATH = "{(START / os.environ[FOLDER]).resolve()}"', 'MSWEA_GLOBAL_CONFIG_DIR = "{home}"']
    lines += ['MSWEA_SILENT_STARTUP = "1"']
    (folder / "agents" / f"{NAME}.toml").write_text("\n".join(lines) + "\n")
    settings = Settings(data_dir=folder / "data", agents_dir=folder / "agents")
    BACKENDS["unsafe-local"].install_program(Programs(folder / "agents")[NAME].program, settings)
