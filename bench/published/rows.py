"""Reads files of published runs: lines of comments, a header, rows of values that are checked one by one."""

import csv
import math


class wrong(Exception):
    """A file is not as it must be; the text says where and why."""


class row:
    """A row of a file; its readers refuse a value by file, line, column, value and rule."""

    def __init__(self, file, line, cells):
        self.file, self.line, self.cells = file, line, cells

    @property
    def place(self):
        return f"{self.file}:{self.line}"

    def refuse(self, column, rule):
        raise wrong(f"{self.place}: {column} is '{self.cells[column]}': {rule}")

    def text(self, column):
        if not self.cells[column]:
            self.refuse(column, "must not be empty")
        return self.cells[column]

    def integer(self, column, least=1, most=1 << 28):
        value = self.cells[column]
        if not (value.isascii() and value.isdigit() and len(value) < 16 and least <= int(value) <= most):
            self.refuse(column, f"must be an integer from {least} to {most}")
        return int(value)

    def number(self, column):
        """Positive."""
        try:
            value = math.nan if "_" in self.cells[column] else float(self.cells[column])
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            self.refuse(column, "must be a positive number")
        return value

    def of(self, column, known):
        """What `known` has under the value."""
        if self.cells[column] not in known:
            self.refuse(column, "must be one of " + ", ".join(key or "nothing" for key in known))
        return known[self.cells[column]]

    def flag(self, column):
        return self.of(column, {"0": False, "1": True})

    def quotient(self, column, by, what):
        """The value over `by`, which must divide it."""
        value = self.integer(column)
        if value % by:
            self.refuse(column, f"must be a multiple of {what}, {by}")
        return value // by


def read(path, formats):
    """(the format, rows) of a file: that of `formats` whose `columns` are those of its header, in any order."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as why:
        raise wrong(f"{path}: cannot be read: {why}") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise wrong(f"{path}: no header: must have a line of columns")
    try:
        table = [(number, [cell.strip() for cell in next(csv.reader([line], strict=True))]) for number, line in lines]
    except csv.Error as why:
        raise wrong(f"{path}: no table of comma separated values: {why}") from None
    (at, columns), *rest = table
    known = next((one for one in formats if sorted(one.columns) == sorted(columns)), None)
    if not known:
        listed = "\n".join(f"  {one.name}: {','.join(one.columns)}" for one in formats)
        raise wrong(f"{path}:{at}: unknown columns {','.join(columns)}: must be those of one of\n{listed}")
    if not rest:
        raise wrong(f"{path}: no rows behind the columns")
    rows = []
    for number, cells in rest:
        if len(cells) != len(columns):
            raise wrong(f"{path}:{number}: {len(cells)} values, columns are {len(columns)}: must be as many")
        rows.append(row(path, number, dict(zip(columns, cells))))
    return known, rows
