"""A program under the watcher is the program alone: status, output, files, `__main__`.

None of these imports torch: what is watched while training is in `test_script_integration.py`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from watched_scripts import WATCH, alone_and_watched, run

NOTHING = "trueloop: nothing was watched: torch was not imported\n"

PROGRAMS = {
    "prints": "print('hello')",
    "exits with a number": "import sys; print('out'); sys.exit(3)",
    "exits with a text": "import sys; sys.exit('this is why')",
    "exits with nothing": "import sys; sys.exit()",
    "raises SystemExit in a function": "def f(): raise SystemExit(300)\nf()",
    "raises": "def f():\n    raise ValueError('no')\n\nf()",
    "raises from another": (
        "def f():\n    try:\n        {}['a']\n    except KeyError as error:\n"
        "        raise RuntimeError('x') from error\nf()"
    ),
    "has a hook of its own": (
        "import sys, traceback\n"
        "def hook(kind, error, trace):\n"
        "    print(kind.__name__, len(traceback.extract_tb(trace)), error.__traceback__ is trace)\n"
        "sys.excepthook = hook\n"
        "def f(): raise ValueError('no')\nf()"
    ),
    "does not parse": "x = (\n",
    "has no main clause": "import json\nassert __name__ == '__main__'\nprint(json.__name__)",
    "ends by os._exit": "import os, sys; print('x'); sys.stdout.flush(); os._exit(7)",
    "has exit handlers": (
        "import atexit\natexit.register(print, 'last')\natexit.register(print, 'first')\n"
        "print('body')"
    ),
    "raises in an exit handler": "import atexit\natexit.register(int, 'x')",
    "exits in a thread": (
        "import sys, threading\nt = threading.Thread(target=lambda: sys.exit(5))\n"
        "t.start(); t.join(); print('on')"
    ),
    "raises in a thread": (
        "import threading\ndef f(): raise ValueError('no')\n"
        "t = threading.Thread(target=f, name='T')\nt.start(); t.join(); print('on')"
    ),
    "goes on in a thread": (
        "import threading, time, atexit\natexit.register(print, 'handler')\n"
        "def f():\n    time.sleep(0.3); print('thread')\nthreading.Thread(target=f).start()\n"
        "print('main')"
    ),
    "leaves a pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(2)\nprint(pool.submit(lambda: 3).result())"
    ),
    "forks": (
        "import os, sys\nchild = os.fork()\nif not child:\n    print('child'); sys.exit(4)\n"
        "print('status', os.waitpid(child, 0)[1] >> 8)"
    ),
    "forks a pool": (
        "import multiprocessing as mp\ndef f(x): return x + 1\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('fork').Pool(2) as pool: print(pool.map(f, range(4)))"
    ),
    "spawns a pool": (
        "import multiprocessing as mp\nclass A:\n    def __init__(self, x): self.x = x\n"
        "def f(a): return A(a.x + 1)\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print([a.x for a in pool.map(f, [A(1), A(2)])], type(A(1)).__module__)\n"
    ),
    "starts a fork server": (
        "import multiprocessing as mp\ndef f(x): return x * 2\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('forkserver').Pool(1) as pool: print(pool.map(f, [1, 2]))"
    ),
    "pickles its own class": (
        "import pickle\nclass A: pass\nopen('a.pkl', 'wb').write(pickle.dumps([A, A()]))\n"
        "print(pickle.load(open('a.pkl', 'rb'))[0] is A)"
    ),
    "parses arguments": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float)\n"
        "p.add_argument('rest', nargs='*')\nprint(p.parse_args(), p.prog)"
    ),
    "looks at itself": (
        "import sys\nprint(sorted(globals()), __spec__, __package__, __cached__, __annotations__)\n"
        "print(__file__, sys.argv, sys.path[0], type(__builtins__), type(__loader__))\n"
        "print(sys.modules['__main__'].__dict__ is globals(), sys._getframe().f_code.co_filename)"
    ),
    "leaves a file unclosed": "import sys\nkept = open('log.txt', 'w'); kept.write('all of it')",
    "is at a terminal of none": "import sys\nprint(input())",
    "writes many bytes": "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 300)",
    "takes stderr for itself": "import sys\nsys.stderr = sys.stdout\nprint('x', file=sys.stderr)",
    "closes its output": "import sys\nprint('x'); sys.stdout.close()",
    "warns": "import warnings\nwarnings.warn('mind', DeprecationWarning)\nwarnings.warn('you')",
    "has finalizers": "class A:\n    def __del__(self): print('gone')\na = A()",
    "moves away": "import os\nos.makedirs('x'); os.chdir('x'); open('here', 'w').close()",
    "recurses": "import sys\ndef f(n): return n and f(n - 1)\nf(900); print('deep')",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_alone(name: str, tmp_path: Path) -> None:
    alone, watched = alone_and_watched(tmp_path, PROGRAMS[name], "a", "--lr", "3", "--", "-m")
    assert watched == alone._replace(err=alone.err + NOTHING)


@pytest.mark.parametrize("ending", ["KeyboardInterrupt", "SIGTERM", "handled"])
def test_a_signal_ends_it_as_it_would_alone(ending: str, tmp_path: Path) -> None:
    # The signal is held back until it is there: it then comes at the same line each time.
    text = (
        "import signal, sys, time\n"
        f"{'signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))' * (ending == 'handled')}\n"
        "both = {signal.SIGINT, signal.SIGTERM}\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, both)\n"
        "print('ready', flush=True)\n"
        "while not signal.sigpending() & both:\n    time.sleep(0.001)\n"
        "def wait():\n    signal.pthread_sigmask(signal.SIG_UNBLOCK, both)\n    time.sleep(60)\n"
        "wait()\n"
    )
    sent = signal.SIGINT if ending == "KeyboardInterrupt" else signal.SIGTERM
    alone, watched = alone_and_watched(tmp_path, text, interrupt=sent)
    said = "" if ending == "SIGTERM" else NOTHING
    assert watched == alone._replace(err=alone.err + said)
    assert alone.status == {"KeyboardInterrupt": -2, "SIGTERM": -15, "handled": 9}[ending]


@pytest.mark.parametrize("name", ["pkg", "pkg.part", "single"])
def test_modules_run_as_python_runs_them(name: str, tmp_path: Path) -> None:
    text = (
        "import sys\nprint(__name__, __file__, __package__, __spec__.name, sys.argv, sys.path[0])\n"
        # Flushed: a pool ends its worker as it is.
        "print(sorted(globals()), flush=True)\nimport multiprocessing as mp\ndef f(x): return x\n"
        # Python's own workers do not find what stands in a package's __main__.
        "if __name__ == '__main__' and __spec__.name != 'pkg.__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool: print(pool.map(f, [1]))\n"
    )
    for path in ("pkg/__init__.py", "pkg/__main__.py", "pkg/part.py", "single.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("" if path.endswith("__init__.py") else text)
    alone = run([sys.executable, "-m", name, "--x", "1"], tmp_path)
    watched = run([*WATCH, "-m", name, "--x", "1"], tmp_path)
    assert watched == alone._replace(err=alone.err + NOTHING)
    assert alone.status == 0


@pytest.mark.parametrize("form", ["./train.py", "../run/train.py", "link.py", "folder", "app.zip"])
def test_scripts_are_found_by_any_name(form: str, tmp_path: Path) -> None:
    import zipfile

    folder = tmp_path / "run"
    (folder / "folder").mkdir(parents=True)
    text = "import sys\nprint(__file__, sys.argv, sys.path[0], __package__, sorted(globals()))\n"
    (folder / "train.py").write_text(text)
    (folder / "folder" / "__main__.py").write_text(text)
    (folder / "link.py").symlink_to("folder/__main__.py")
    with zipfile.ZipFile(folder / "app.zip", "w") as file:
        file.writestr("__main__.py", text)
    alone = run([sys.executable, form, "x"], folder)
    watched = run([*WATCH, form, "x"], folder)
    assert watched == alone._replace(err=alone.err + NOTHING)
    assert alone.status == 0


def test_the_path_is_left_alone_where_python_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys, json\nprint(json.dumps(sys.path))")
    alone = run([sys.executable, "-P", "train.py"], tmp_path)
    watched = run([sys.executable, "-P", "-m", "trueloop", "watch", "train.py"], tmp_path)
    assert json.loads(watched.out) == json.loads(alone.out)


def test_the_import_of_torch_is_met_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    """A module called torch that fails at first: the hook stays until one has been imported."""
    (tmp_path / "torch.py").write_text("import os\nif 'N' in os.environ: os.environ['N'] + 1\n")
    (tmp_path / "train.py").write_text(
        "import importlib.util, multiprocessing, os, sys\n"
        "print(importlib.util.find_spec('torch').name, 'torch' in sys.modules)\n"
        "os.environ['N'] = 'x'\n"
        "try:\n    import torch\nexcept TypeError as error:\n    print(error)\n"
        "del os.environ['N']\n"
        "import torch\n"
        "print(torch.__file__, type(torch.__loader__).__name__, vars(torch.__loader__).keys())\n"
        "print(sys.meta_path)\n"
    )
    alone = run([sys.executable, "train.py"], tmp_path)
    watched = run([*WATCH, "train.py"], tmp_path)
    strip = [line.split(b" at 0x")[0] for line in watched.out.splitlines()]
    assert strip == [line.split(b" at 0x")[0] for line in alone.out.splitlines()]
    assert watched.status == alone.status == 0
    assert "please report it" in watched.err  # that torch is none


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_script_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("")
    path.chmod(0)
    done = run([*WATCH, "train.py"], tmp_path)
    assert (done.status, done.out) == (2, b"")
    assert done.err == "trueloop: error: train.py cannot be read (Permission denied): check it\n"
