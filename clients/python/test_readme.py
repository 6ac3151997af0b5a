"""The README's example, as pasted."""

import contextlib
import io
import re

from larimar_server import ROOT


def test_the_example_works_as_pasted(own_server):
    readme = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    promised = re.search(r"It prints `([^`]*)`", readme).group(1)
    development = "UseDevelopmentStorage=true"  # Its port may be taken on this machine.
    assert development in example
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example.replace(development, own_server.connection_string()), {})
    assert printed.getvalue() == promised + "\n"
