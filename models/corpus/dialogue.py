"""Dialogues: what is said, which answers are right, and how a dialogue becomes the model's text."""

import json
from dataclasses import dataclass, field
from typing import Callable, Optional

END, SYSTEM, USER, ASSISTANT, TOOL, TOOLS = (
    "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>")
CALL, CALL_END = "<tool_call>", "</tool_call>"
SPECIALS = (END, SYSTEM, USER, ASSISTANT, TOOL, TOOLS, CALL, CALL_END)
MARKS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL}

# The same as rendered() below, for llama.cpp.
CHAT_TEMPLATE = (
    "{%- if tools -%}<|tools|>"
    "{%- for tool in tools -%}{%- set f = tool.function if tool.function else tool -%}"
    "{{ '\\n' + f.name + '(' }}"
    "{%- set needed = f.parameters.required if f.parameters and f.parameters.required else [] -%}"
    "{%- if f.parameters and f.parameters.properties -%}"
    "{%- for key, property in f.parameters.properties.items() -%}"
    "{{ (', ' if not loop.first else '') + key + ('' if key in needed else '?') }}"
    "{%- if property.enum -%}{%- for each in property.enum -%}"
    "{{ ': ' if loop.first else '|' }}{{ each }}{%- endfor -%}"
    "{%- elif property.type is string -%}{{ ': ' + property.type }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{ ') ' + f.description if f.description else ')' }}"
    "{%- endfor -%}<|end|>{%- endif -%}"
    "{%- for m in messages -%}"
    "{%- if m.role == 'assistant' -%}<|assistant|>{{ m.content if m.content else '' }}"
    "{%- if m.tool_calls -%}{%- for call in m.tool_calls -%}"
    "{%- set f = call.function if call.function else call -%}"
    "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": "
    "{{ f.arguments if f.arguments is string else f.arguments | tojson }}}\n</tool_call>"
    "{%- endfor -%}{%- endif -%}"
    "{%- elif m.role == 'tool' -%}<|tool|>{{ m.content }}"
    "{%- elif m.role == 'system' or m.role == 'developer' -%}<|system|>{{ m.content }}"
    "{%- else -%}<|user|>{{ m.content }}{%- endif -%}<|end|>"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)


@dataclass
class Answer:
    """What the model said: text, and the calls as {"name", "arguments"}."""

    text: str
    calls: list = field(default_factory=list)


@dataclass
class Message:
    """One message. An assistant's content is the answer to learn; check judges another one.
    attacked: whether it answers tool data with an instruction in it."""

    role: str
    content: str
    check: Optional[Callable[[Answer], bool]] = None
    attacked: bool = False


def schema(kind):
    """Of a parameter of this type."""
    return {"type": "string", "enum": kind.split("|")} if "|" in kind else {"type": kind}


@dataclass
class Tool:
    """A tool on offer. parameters: (name, JSON type, required), in the schema's order. A type with | in
    it has the values of a string."""

    name: str
    description: str
    parameters: list

    def definition(self):
        """As MCP and `run` want it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": {name: schema(kind) for name, kind, _ in self.parameters},
                "required": [name for name, _, required in self.parameters if required],
            },
        }

    def rendered(self):
        inside = ", ".join(f"{name}{'' if required else '?'}: {kind}"
                           for name, kind, required in self.parameters)
        return f"\n{self.name}({inside}) {self.description}"


@dataclass
class Dialogue:
    ability: str
    messages: list
    tools: list = field(default_factory=list)

    def judged(self):
        """The messages that the evaluation asks for; it takes the others as they are."""
        checked = [message for message in self.messages if message.check is not None]
        return [message for message in checked if message.attacked] or checked


def call_text(name, arguments):
    """A tool call as the model writes it."""
    call = f'{{"name": "{name}", "arguments": {json.dumps(arguments, ensure_ascii=False)}}}'
    return f"{CALL}\n{call}\n{CALL_END}"


def said(text):
    """An assistant's message that is right when its text is exactly this, without calls."""
    return Message("assistant", text, lambda answer: answer.text.strip() == text
                   and not answer.calls)


def called(name, arguments):
    """An assistant's message that is right when it is exactly this one call."""
    wanted = {"name": name, "arguments": arguments}
    return Message("assistant", call_text(name, arguments), lambda answer: answer.calls == [wanted])


def rendered(dialogue):
    """The dialogue's text in pieces (text, whether the model says it itself)."""
    pieces = []
    if dialogue.tools:
        pieces.append((TOOLS + "".join(tool.rendered() for tool in dialogue.tools) + END, False))
    for message in dialogue.messages:
        if message.role == "assistant":
            pieces += [(ASSISTANT, False), (message.content + END, message.check is not None)]
        else:
            pieces.append((MARKS[message.role] + message.content + END, False))
    return pieces
