"""Longer texts: a denial of what another tells, and a number that is given anew."""

from __future__ import annotations

from memory_core.shmr.messages import DENIED, SAME_CONTEXT, denied_by, measured_again, message_of, weights

OTHERS = [
    "We talked about the garden and the fence.",
    "The project needs a new logo, and I have two ideas for it.",
    "I'm reading about bees. They are busy.",
]


def test_a_denial_meets_the_message_that_tells_it() -> None:
    """ "I've never …" speaks against the message that tells just that, and against no other."""
    told = message_of("I set up the greenhouse heating yesterday. It took three hours, can you help me tune it?")
    denial = message_of("I've never set up any greenhouse heating, so where do I start?")
    messages = [message_of(text) for text in OTHERS]
    weight = weights([told, denial, *messages])
    assert denied_by(denial, told, weight) >= DENIED
    assert all(denied_by(denial, other, weight) < DENIED for other in messages)
    assert denied_by(told, denial, weight) == 0.0


def test_a_number_given_anew_needs_the_same_context_and_a_word_of_change() -> None:
    """Another count of the same thing, said to have changed, is found; without the change, or elsewhere, it is not."""
    earlier = message_of("My seed collection has 40 packets, all labelled.")
    later = message_of("My seed collection has now grown to 55 packets.")
    unsaid = message_of("My seed collection has 55 packets.")
    elsewhere = message_of("The post office now sends 55 packets a day.")
    weight = weights([earlier, later, unsaid, elsewhere, *(message_of(text) for text in OTHERS)])
    assert measured_again(earlier, later, weight) >= SAME_CONTEXT
    assert measured_again(earlier, unsaid, weight) == 0.0
    assert measured_again(earlier, elsewhere, weight) < SAME_CONTEXT


def test_code_and_empty_texts_say_nothing() -> None:
    """What stands between fences is no statement; an empty text has no words."""
    assert message_of("```\nI never tested the greenhouse heating\n```").denials == ()
    assert message_of("").words == frozenset()
