"""Which rows of a person count, where persons have a few rows in a few keys each.

Of each person ``keys`` has the codes of the keys that rows were taken of, -1 where there is room for another one, and
``tallies`` how many rows of each. Where the number of keys has no limit, there is one tally for all of them.
"""

from typing import Any

from dpfrugal.kernels.compiler import cached, inlined


@inlined
def place_of(keys: Any, person: Any, code: Any) -> Any:
    """Where a person's tally of this key is, or would be; beyond the last place where there is no room."""
    place, most_keys = 0, keys.shape[1]
    while place < most_keys and keys[person, place] >= 0 and keys[person, place] != code:
        place += 1
    return place


@cached
def take_rows(order: Any, who: Any, codes: Any, tallies: Any, keys: Any, most_items: Any, kept: Any) -> Any:
    """Keep rows, in this order, while their person has room for the key, if keys are limited, and for another row."""
    for k in range(order.shape[0]):
        i = order[k]
        person, code = who[i], codes[i]
        if code < 0:
            continue
        place = place_of(keys, person, code)
        if place < tallies.shape[1] and tallies[person, place] < most_items:
            if place < keys.shape[1]:
                keys[person, place] = code
            tallies[person, place] += 1
            kept[i] = code


@cached
def return_rows(who: Any, kept: Any, tallies: Any, keys: Any) -> Any:
    """Take back what ``take_rows`` wrote down; the keys that are left without rows are the last ones of a person."""
    for i in range(who.shape[0]):
        if kept[i] >= 0:
            tallies[who[i], place_of(keys, who[i], kept[i])] -= 1
    for i in range(who.shape[0]):
        for place in range(keys.shape[1]):
            if tallies[who[i], place] == 0:
                keys[who[i], place] = -1
