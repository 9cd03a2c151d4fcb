"""Several trainings of examples/train_bert.py in one process: prints a line of losses for each.

    python several_trainings.py EXAMPLES FRAMEWORK FOLDER "OPTIONS" ...

Each is captured in FOLDER/0, FOLDER/1, ...
"""

import runpy
import sys
from pathlib import Path

runpy.run_path(str(Path(__file__).parent.parent / "without_compiler.py"))
sys.path.insert(0, sys.argv[1])
import train_bert  # noqa: E402

for number, words in enumerate(sys.argv[4:]):
    train_bert.main([sys.argv[2], f"{sys.argv[3]}/{number}", *words.split()])
