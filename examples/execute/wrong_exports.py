"""Whether wrong exports are found out, by any runtime."""

import copy


def found_out(document, mutate, right, refused, execute):
    """How a wrong export is found out; nothing where it is not. `execute(document)`: what came out, and what it differs from; `right`: what came out of
    the document unchanged; `refused`: the exceptions that a wrong one may end with."""
    wrong = copy.deepcopy(document)
    mutate(wrong)
    if wrong == document:
        raise ValueError(f"{mutate.__name__} changes nothing")
    try:
        row, apart = execute(wrong)
    except refused as e:
        return f"refused: {' '.join(str(e).split())[:100]}"
    if apart:
        return f"differs from {apart}"
    if row["measured"] != right["measured"]:
        return f"sends {sum(row['measured'].values())} B, not {sum(right['measured'].values())}"
    if row.get("memory") != right.get("memory"):
        return f"other memory: {next(k for k in row['memory'] if row['memory'][k] != right['memory'][k])}"
    return ""


def missed(document, mutations, right, refused, execute):
    """How many are not found out; says of each how."""
    count = 0
    for mutate in mutations:
        how = found_out(document, mutate, right, refused, execute)
        print(f"{'found' if how else 'MISSED':8} {mutate.__name__}: {mutate.__doc__.strip()} {how}", flush=True)
        count += not how
    return count
