"""llama.cpp through llama-cpp-python's low-level interface, measured as llama-bench measures.

Standard input names a test a line (`pp512`, `tg64 @ d2048`, `load`), standard output answers each with one repetition as JSON.
Batches of at most 2,048 tokens in micro-batches of 512, keys and values as f16, as llama-bench has them unless told otherwise;
the logits of the last token of a batch, no sampling, random ids; one warm-up before the first repetition of a test. The tokens of a
depth are computed once and put back before every repetition, outside the clock.
"""

import argparse
import ctypes
import json
import random
import resource
import sys
import time

import llama_cpp as ll

BATCH, MICRO_BATCH = 2048, 512
KV_TYPES = {"f32": 0, "f16": 1, "q8_0": 8}


def parse(name):
    """`tg64 @ d2048` as ("tg", 64, 2048)."""
    work, _, depth = name.partition(" @ d")
    return work[:2], int(work[2:]), int(depth or 0)


class Peer:
    def __init__(self, options):
        self.options = options
        self.model = self.context = None
        self.prepared = self.depth = self.state = None
        self.random = random.Random(1)

    def open(self):
        params = ll.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = ll.llama_model_load_from_file(self.options.model.encode(), params)
        if not self.model:
            sys.exit(f"llama.cpp cannot load {self.options.model}")
        self.vocab = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(self.model))

    def new_context(self, tokens):
        if self.context:
            ll.llama_free(self.context)
        params = ll.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = tokens, BATCH, MICRO_BATCH
        params.n_threads = params.n_threads_batch = self.options.threads
        params.flash_attn_type = self.options.flash_attention
        params.type_k = params.type_v = KV_TYPES[self.options.kv_type]
        params.swa_full = False
        self.context = ll.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit(f"llama.cpp makes no context of {tokens} tokens with {vars(self.options)}")

    def decode(self, ids):
        for first in range(0, len(ids), BATCH):
            part = ids[first : first + BATCH]
            array = (ll.llama_token * len(part))(*part)
            if ll.llama_decode(self.context, ll.llama_batch_get_one(array, len(part))) != 0:
                sys.exit("llama.cpp cannot decode")

    def ids(self, count):
        return [self.random.randrange(self.vocab) for _ in range(count)]

    def run(self, work, tokens):
        ids = self.ids(tokens)
        self.back_to_depth()
        start = time.perf_counter(), time.process_time()
        if work == "pp":
            self.decode(ids)
        else:
            for token in ids:
                self.decode([token])
        ll.llama_synchronize(self.context)
        return time.perf_counter() - start[0], time.process_time() - start[1]

    def back_to_depth(self):
        ll.llama_memory_clear(ll.llama_get_memory(self.context), False)
        if self.depth and ll.llama_state_seq_set_data(self.context, self.state, len(self.state), 0) == 0:
            sys.exit("llama.cpp does not take its own state back")

    def prepare(self, name):
        work, tokens, depth = parse(name)
        self.new_context(depth + tokens)
        self.depth, self.state = depth, None
        if depth:
            self.decode(self.ids(depth))
            ll.llama_synchronize(self.context)
            size = ll.llama_state_seq_get_size(self.context, 0)
            self.state = (ctypes.c_uint8 * size)()
            if ll.llama_state_seq_get_data(self.context, self.state, size, 0) == 0:
                sys.exit("llama.cpp does not give its state")
        self.run(work, tokens if work == "pp" else 1)
        self.prepared = name

    def repeat(self, name):
        if self.prepared != name:
            self.prepare(name)
        work, tokens, _ = parse(name)
        seconds, processor_seconds = self.run(work, tokens)
        return {"seconds": seconds, "processor_seconds": processor_seconds, "tokens_per_second": tokens / seconds}

    def load(self):
        """From nothing to the logits after one token: weights, tokenizer, threads, context."""
        if self.context:
            ll.llama_free(self.context)
        if self.model:
            ll.llama_model_free(self.model)
        self.context = self.prepared = self.state = None
        start = time.perf_counter(), time.process_time()
        self.open()
        opened = time.perf_counter() - start[0]
        self.new_context(1)
        self.decode([0])
        ll.llama_synchronize(self.context)
        seconds, processor_seconds = time.perf_counter() - start[0], time.process_time() - start[1]
        return {"seconds": seconds, "processor_seconds": processor_seconds, "open_seconds": opened}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--flash-attention", type=int, choices=[0, 1], required=True)
    parser.add_argument("--kv-type", choices=KV_TYPES, required=True)
    peer = Peer(parser.parse_args())
    silent = ll.llama_log_callback(lambda level, text, user_data: None)
    ll.llama_log_set(silent, ctypes.c_void_p(0))
    ll.llama_backend_init()
    peer.open()
    about = ll.llama_print_system_info().decode()
    print(json.dumps({"ready": f"llama-cpp-python {ll.__version__}", "system": about}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        answer = peer.load() if name == "load" else peer.repeat(name)
        answer |= {"test": name, "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
