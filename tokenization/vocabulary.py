"""Token ids that every task shares, and the reasons why an output cannot be read."""

PAD, BOS, EOS, TRACE, ANSWER, NEUTRAL = range(6)
SPECIAL_NAMES = ("<pad>", "<bos>", "<eos>", "<trace>", "<answer>", "<neutral>")
STRATEGY_BASE = len(SPECIAL_NAMES)  # the task's own strategies follow, in their order

# What a parser can say of one output; OK is the only good one.
PARSE_REASONS = ("ok", "empty", "bad_token", "missing_answer", "missing_eos", "out_of_range")
OK, EMPTY, BAD_TOKEN, MISSING_ANSWER, MISSING_EOS, OUT_OF_RANGE = range(len(PARSE_REASONS))
