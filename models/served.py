"""A server with a model to be judged."""

import json
import re
import subprocess
import sys
import urllib.request


class Served:
    """`sluice serve` with the model on a free port, for as long as the block lasts."""

    def __init__(self, program, model):
        self.process = subprocess.Popen(
            [program, "serve", "--model", model, "--port", "0", "--model-threads", "1",
             "--log-format", "json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.url = None
        for line in self.process.stdout:
            found = re.search(r"http://\S+/mcp", line)
            self.url = found.group() if found else self.url
            if '"ready"' in line:
                return
        sys.exit("the server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()

    def run(self, messages, tools, max_tokens):
        """The reply to the method `run`, which chooses the likeliest tokens."""
        params = {"messages": messages, "temperature": 0, "max_tokens": max_tokens}
        if tools:
            params["tools"] = tools
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "run", "params": params}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url, body), timeout=120) as reply:
            return json.load(reply)
