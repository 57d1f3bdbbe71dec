"""What a statement of a training loop does, judged by how it is written; and whether a change of it
is a fault, judged by hand: that the trained weights are others is not enough, since a loop may be
changed into another right one."""

from __future__ import annotations

import ast
import re
from typing import Literal, NamedTuple

Scope = Literal["fault", "no rule", "choice", "own logic"]

# The steps of training whose order and number matter. They are tried at every position of their
# block; all others at the neighbouring positions only.
KEYS = {
    "zero_grad", "backward", "step", "clip", "unscale", "scaler update", "schedule", "mode",
    "checkpoint",
}  # fmt: skip

# The first that fits decides.
PATTERNS = [
    (kind, re.compile(pattern))
    for kind, pattern in [
        ("log", r"^(print|logger|writer|wandb|log)\b|\.write\("),
        ("zero_grad", r"zero_grad\(|\.grad = None"),
        ("backward", r"\.backward\("),
        ("unscale", r"unscale_\("),
        ("scaler update", r"scaler\.update\("),
        ("schedule", r"sched\w*\.step\("),
        ("rate by hand", r"\['lr'\] =|^lr = "),
        ("step", r"(optim\w*|opt|scaler|optimizer_\w|optimizers?\[.*\])\.step\("),
        ("clip", r"clip_grad"),
        ("mode", r"^(?!recipe\b)[\w.\[\]]+\.(train|eval)\((True|False)?\)$"),
        ("checkpoint", r"torch\.save|state_dict|deepcopy|save_checkpoint|best_state|best_model"),
        ("graph off", r"^with .*(no_grad|inference_mode|set_grad_enabled)|^@torch.*(no_grad|mode)"),
        ("autocast", r"^with .*autocast"),
        ("graph cut", r"\.detach\(|repackage"),
        ("statistics", r"(loss|total|count|correct|sum|hits|seen|losses|\bn)\b.*(\+=|/=)|append\("),
        ("forward", r"= (self\.)?(model|net|network|generator|ema_model|model_ft)\("),
        ("loss", r"(criterion|loss_fn|_loss|cross_entropy|discriminator)\("),
        ("loss arithmetic", r"^(loss|d_loss|g_loss) = "),
        ("train pass", r"train_epoch\(|train_one_epoch\(|^train\(|mini_batch\("),
        ("validation pass", r"(validate|evaluate|test|estimate|reconstruction_error)\("),
        ("average", r"update_ema"),
        ("data", r"\.to\(|= (data|batch|next)\b|torch\.(ones|zeros|randn)|get_batch"),
        ("control", r"^(break|continue|return|yield)"),
    ]
]


_FORWARD_INSIDE = re.compile(r"\b(model|net)\(.*\.backward\(")


def kind_of(node: ast.stmt) -> str:
    text = head_of(node)
    return next((kind for kind, pattern in PATTERNS if pattern.search(text)), "other")


def kinds_of(node: ast.stmt) -> tuple[str, ...]:
    """All that it does: `criterion(model(x), y).backward()` is a forward as well."""
    kind = kind_of(node)
    whole = kind == "backward" and _FORWARD_INSIDE.search(head_of(node))
    return ("forward", kind) if whole else (kind,)


def head_of(node: ast.stmt) -> str:
    """The statement; of a block its first line, of a small loop that clears gradients all."""
    lines = ast.unparse(node).splitlines()
    if isinstance(node, ast.For) and len(node.body) == 1 and ".grad = None" in lines[-1]:
        return lines[-1].strip()
    return lines[0]


class Judgement(NamedTuple):
    """A change of these kinds, in these ways, with these effects, is what?"""

    kinds: str
    changes: str
    effects: str
    scope: Scope
    why: str
    where: str = ""
    """A pattern in `program: statement`."""
    passed: tuple[str, ...] = ()
    """Kinds that must all be among those that the statement was moved past."""

    def fits(
        self, kind: str, change: str, effect: str, where: str, passed: tuple[str, ...]
    ) -> bool:
        asked = zip((self.kinds, self.changes, self.effects), (kind, change, effect), strict=True)
        return (
            all(re.fullmatch(pattern, text) for pattern, text in asked)
            and re.search(self.where, where) is not None
            and set(self.passed) <= set(passed)
        )


_OF_A_GAN = r"(gan|gan_pair|gan_logits|generator_before_discriminator): (optimizer_?D|opt_D)\b"
UPDATE = "zero_grad|backward|step|clip|unscale|scaler update"

# The first that fits decides.
JUDGEMENTS = [
    # Right loops of another kind
    Judgement("mode", ".*", "weights|buffers", "choice", "a backbone that trains as well",
              r"model\.backbone\.eval"),
    Judgement("clip", "delete", ".*", "choice", "not clipping is no fault"),
    Judgement("clip", "duplicate", ".*", "choice", "clipped twice is clipped"),
    Judgement("autocast", "unwrap", ".*", "choice", "full precision is no fault"),
    Judgement("rate by hand", ".*", ".*", "own logic", "the rate is set by hand"),
    # Faults that no rule speaks of
    Judgement(UPDATE, "down.*", "weights", "no rule", "code behind `return`", "", ("control",)),
    Judgement("zero_grad", "up [2-9]|down [5-9]", "weights", "no rule",
              "a GAN's other loss adds to the gradients", _OF_A_GAN),
    Judgement("step", "down [4-9]", "weights", "no rule",
              "a GAN's other loss adds to the gradients", "gan_logits: optimizerD"),
    Judgement("step", "up ([5-9]|1.)", "weights", "no rule",
              "a GAN's other loss adds to the gradients", "gan: optimizer_D"),
    Judgement("clip", "out before", "weights", "no rule", "clipped at every micro-batch",
              "accumulation:"),
    Judgement("clip|zero_grad|step|backward", "into.*", "weights", "no rule",
              "done in some turns only"),
    Judgement("backward", "duplicate", ".*", "no rule", "every gradient counts twice",
              r": .*\b(model|net)\("),
    Judgement("step", "duplicate", ".*", "no rule", "every gradient is applied twice"),
    Judgement("schedule", "duplicate", ".*", "no rule", "two ticks in one place"),
    Judgement("schedule", "out.*", ".*", "no rule", "two ticks an epoch, one in each phase",
              "phases:"),
    Judgement("other", "unwrap", "weights", "no rule", "two ticks an epoch, one in each phase",
              "phases: if phase == 'train':"),
    Judgement("schedule", "down.*", "weights", "no rule", "saved before the tick", "",
              ("checkpoint",)),
    Judgement("schedule", "into.*", "weights", "no rule", "a schedule without a length",
              "checkpoints:"),
    Judgement("schedule", "out after", "weights", "no rule", "a schedule without a length",
              "dict_batches:"),
    Judgement("schedule", "up.*", "weights", "own logic", "another number is watched",
              "plateau:", ("statistics",)),
    Judgement("graph off", "unwrap", "graph", "no rule", "a teacher without `no_grad`", "soft = "),
    Judgement("graph off", "unwrap", "memory", "no rule", "averaged weights keep graphs",
              "autoencoder_ema:.*update_ema|autoencoder_ema: @torch"),
    Judgement("backward", "delete", ".*", "no rule", "nothing computes gradients"),
    # The rotated loop: step, clear, forward, backward
    Judgement("step", "up.*", "weights", "choice", "the rotated loop", "", ("zero_grad", "loss")),
    Judgement("step", "up.*", "weights", "choice", "the rotated loop", "",
              ("zero_grad", "forward")),
    Judgement("control", "without item", "memory", "choice", "one graph is kept for a turn"),
    # Faults
    Judgement(UPDATE, ".*", "weights|memory", "fault", "the order of the update"),
    Judgement("schedule", ".*", "weights", "fault", "the clock of the schedule"),
    Judgement("mode", ".*", "weights|buffers|reported", "fault", "the wrong mode"),
    Judgement("validation pass", "(up|into).*", "weights", "fault", "the mode it leaves behind",
              "onecycle:"),
    Judgement("graph off", "unwrap", "weights|memory|graph", "fault", "a graph nobody uses"),
    Judgement("forward", "(up|down|out).*", "graph", "fault", "a graph nobody uses"),
    Judgement(".*", "without item|without detach", "memory", "fault", "graphs that are kept"),
    Judgement("loss arithmetic", "(delete|down|out).*", "weights", "fault",
              "micro-batches that are not averaged", "accumulation:"),
    Judgement("checkpoint", "delete", "weights", "fault", "resumes without the optimizer",
              r"optimizer\.load_state_dict"),
    # All others
    Judgement("loss arithmetic", ".*", "weights", "choice", "another weight of the loss"),
    Judgement("control", ".*", "weights", "no rule", "the loop is left too soon or too late"),
    Judgement("graph cut", ".*", "weights|memory", "no rule", "the graph is cut elsewhere"),
    Judgement("forward|loss", ".*", "weights|buffers", "no rule",
              "another batch's output is used"),
    Judgement(".*", ".*", ".*", "own logic", "the program's own logic"),
]  # fmt: skip


def judge(kind: str, change: str, effect: str, where: str, passed: tuple[str, ...]) -> Judgement:
    return next(row for row in JUDGEMENTS if row.fits(kind, change, effect, where, passed))
