"""One worker of the training; models/train starts as many as there are cores.

The schedule counts steps, not time, so that a training that is paused or resumed goes the same way.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from torch import distributed

from corpus import training_dialogue
from corpus.dialogue import SPECIALS, rendered
from tokenizer import Tokenizer
from training.batches import Lane
from training.beginning import begin
from training.export import export
from training.network import Network, Shape
from training.optimizer import HALF, Muon
from training.reading import begin_with, read

LANES = 2  # batches of a step, shared by the workers
# Steps at which the mixture of dialogues goes over to its next part, and how many that takes. These and
# RATES are stretched to the steps of a training of another length.
PARTS, GOING_OVER = (250, 2800, 4200, 5600), 250
MATRIX_RATE, OTHER_RATE, DECAY = 0.01, 0.004, 0.05
# The share of those rates at some steps, in between on straight lines; the last step ends the training.
RATES = ((-1, 0.0), (59, 1.0), (1550, 1.0), (4200, 40 / 93), (6800, 0.0))
STEPS = RATES[-1][0]
# Where in that schedule a training begins that goes on from a trained file, and the steps until it has
# the whole of that rate.
CONTINUED_AT, WARM_UP = 3000, 40
VOCABULARY_DIALOGUES = 6000
SAVE_EVERY, LOG_EVERY = 200, 20


def learn_tokenizer(seed):
    texts = []
    for index in range(VOCABULARY_DIALOGUES):
        pieces = rendered(training_dialogue(f"{seed} vocabulary {index}", 0.9))
        texts.append("".join(text for text, _ in pieces))
    return Tokenizer.learned(SPECIALS, texts)


def rate_at(step):
    """The share of the rates at this step."""
    for (start, first), (end, last) in zip(RATES, RATES[1:]):
        if step < end:
            return first + (last - first) * (step - start) / (end - start)
    return 0.0


def part_at(step):
    """The part of the mixture (corpus.shares) that the step is in, or between two."""
    return sum(min(1.0, max(0.0, (step - start) / GOING_OVER)) for start in PARTS)


class Training:
    """The state of one worker's training, and what is saved of it."""

    def __init__(self, options):
        self.options = options
        self.folder = Path(options.folder)
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        torch.manual_seed(options.seed)
        self.tokenizer, tensors = read(Path(options.begin)) if options.begin else (None, None)
        self.tokenizer = self.tokenizer or self.shared_tokenizer()
        self.network = Network(Shape(len(self.tokenizer.tokens)))
        if tensors:
            begin_with(self.network, tensors)
        else:
            begin(self.network)
        matrices = [p for p in self.network.layers.parameters() if p.dim() == 2]
        others = [p for p in self.network.parameters() if all(p is not m for m in matrices)]
        self.muon = Muon(matrices, DECAY, options.rank, options.workers)
        self.adam = torch.optim.Adam(others, betas=(0.9, 0.98))
        self.lanes = [Lane(self.tokenizer, f"{options.seed} lane {lane}")
                      for lane in range(options.rank, LANES, options.workers)]
        if self.checkpoint.exists():
            self.restore()

    @property
    def checkpoint(self):
        return self.folder / f"checkpoint-{self.options.rank}.pt"

    @property
    def scheduled(self):
        """The step of the schedule that this one stands for."""
        start = CONTINUED_AT if self.options.begin else 0
        return start + self.step * (STEPS - start) / self.options.steps

    def shared_tokenizer(self):
        path = self.folder / f"tokenizer-{self.options.rank}.json"
        if not path.exists():
            path.write_text(learn_tokenizer(self.options.seed).to_json())
        return Tokenizer.from_json(path.read_text())

    def save(self):
        fresh = self.checkpoint.with_suffix(".new")
        torch.save({"network": self.network.state_dict(), "muon": self.muon.state(),
                    "adam": self.adam.state_dict(), "lanes": [lane.state() for lane in self.lanes],
                    "step": self.step, "tokens": self.tokens, "seconds": self.seconds}, fresh)
        fresh.rename(self.checkpoint)

    def restore(self):
        saved = torch.load(self.checkpoint)
        self.network.load_state_dict(saved["network"])
        self.muon.restore(saved["muon"])
        self.adam.load_state_dict(saved["adam"])
        for lane, state in zip(self.lanes, saved["lanes"]):
            lane.restore(state)
        self.step, self.tokens, self.seconds = saved["step"], saved["tokens"], saved["seconds"]

    def gradients(self):
        """Leaves the mean gradient of the step's batches, of all workers, in .grad; returns the
        mean loss."""
        part = part_at(self.scheduled)
        self.network.zero_grad(set_to_none=True)
        sums = torch.zeros(3)
        for lane in self.lanes:
            tokens, weights = lane.next(part)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=HALF):
                loss = self.network.loss(tokens, weights)
            loss.backward()
            sums += torch.tensor([loss.item(), weights[:, 1:].sum().item(), float(tokens.numel())])
        parameters = list(self.network.parameters())
        if self.options.workers > 1:
            flat = torch.cat([p.grad.flatten() for p in parameters] + [sums])
            distributed.all_reduce(flat)
            sums = flat[-3:]
            for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters] + [3])):
                parameter.grad.copy_(part.view_as(parameter))
        for parameter in parameters:
            parameter.grad /= sums[1]
        self.tokens += int(sums[2])
        return sums[0].item() / sums[1].item()

    def run(self):
        losses, started, first = [], time.process_time(), self.tokens
        while self.step < self.options.steps:
            losses.append(self.gradients())
            rate = rate_at(self.scheduled)
            if self.options.begin:
                rate *= min(1.0, (self.step + 1) / WARM_UP)
            self.muon.step(MATRIX_RATE * rate)
            for group in self.adam.param_groups:
                group["lr"] = OTHER_RATE * rate
            self.adam.step()
            self.step += 1
            if self.step % LOG_EVERY == 0:
                used = time.process_time() - started
                self.log(losses, used, (self.tokens - first) / used)
                self.seconds += used
                losses, started, first = [], time.process_time(), self.tokens
            if self.step % SAVE_EVERY == 0 or self.step == self.options.steps:
                self.save()

    def log(self, losses, used, speed):
        if self.options.rank == 0:
            print(f"step {self.step}/{self.options.steps} loss {sum(losses) / len(losses):.4f} "
                  f"{speed:.0f} tokens per CPU second, {self.tokens / 1e6:.2f} M tokens, "
                  f"{(self.seconds + used) / 60:.1f} CPU minutes", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--begin", help="the file whose weights and vocabulary to begin with")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if options.workers > 1:
        meeting = f"file://{Path(options.folder).resolve()}/workers"
        distributed.init_process_group("gloo", init_method=meeting, rank=options.rank,
                                       world_size=options.workers)
    training = Training(options)
    training.run()
    if options.rank == 0:
        export(training.network, training.tokenizer, options.output)
        summary = {"steps": training.step, "tokens": training.tokens,
                   "parameters": training.network.parameters_count(), "workers": options.workers,
                   "cpu_minutes_of_a_worker": round(training.seconds / 60, 1)}
        print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    main()
