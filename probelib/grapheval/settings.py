"""Settings of a GraphEval study that rarely change: a dictionary in the notebooks, read by ``parameters.complete``."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GraphEvalSettings:
    """The values that a notebook's parameter ``settings`` may set, with their defaults (the paper's in brackets)."""

    # statements
    templates: str | None = None  # CSV file with the columns relation and template, for a graph without templates
    n_corrupted: int = 1  # corruptions per triple
    hard: bool = False  # replace the tail by another tail of the same relation
    pageviews: str | None = None  # JSON file, entity name -> page views (figure 8)
    writer: str = ""  # model that writes a template (figure 9), also name@http://localhost:8000/v1; "": the last model
    # answers
    instruction: str = "at once"  # verdict "at once", or "recalled": after the object of the fact (see ``prompts``)
    new_tokens: int = 16  # longest answer (4096); about 40 for "recalled"
    # judge
    judge_mode: str = "answer"  # answer, paper or released: see ``judge``
    judge_epochs: int = 20  # passes over the labels (100)
    judge_batch: int = 64  # statements per step (8)
    judge_lr: float = 0.001  # learning rate (0.0001)
    judge_seeds: int = 3  # judges trained per score of appendix A
    # prompt encoder
    soft_prompts: bool = False  # virtual tokens in place of the instruction (true)
    virtual_tokens: int = 20  # length of the soft prompt (20)
    encoder_width: int = 0  # width of its network; 0 for the model's own (4096)
    encoder_epochs: int = 2  # passes over statements and answers (5)
    encoder_batch: int = 16  # texts per step (8)
    encoder_lr: float = 0.005  # learning rate (0.00002)
    # speed
    n_alone: int = 24  # statements that are also answered one by one (table 4)

    @property
    def training(self) -> dict:
        """Arguments of ``judge.train``."""
        return {"epochs": self.judge_epochs, "batch": self.judge_batch, "lr": self.judge_lr}

    @property
    def encoder(self) -> dict:
        """Arguments of ``soft_prompt.train_soft_prompt``."""
        sizes = {"tokens": self.virtual_tokens, "width": self.encoder_width}
        return sizes | {"epochs": self.encoder_epochs, "batch": self.encoder_batch, "lr": self.encoder_lr}
