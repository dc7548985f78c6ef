"""Makes the files of this folder with the csv module of Python's standard library:

    python3 make.py

The rows are made up here and have no licence of their own.
"""
import csv
import os

os.chdir(os.path.dirname(os.path.abspath(__file__)))

header = ["sepal length", "sepal width", "species", "note"]
rows = [
    [5.1, 3.5, "setosa", "plain"],
    [7.0, 3.2, "versicolor", 'said "so", twice'],
    [6.3, 3.3, "virginica", "two\nlines, and a comma"],
    [4.9, 3.0, "setosa", ""],
    [1e-3, -2.5, "virginica", "é, \u4e16"],
]


def write(name, **options):
    with open(name, "w", newline="", encoding=options.pop("encoding", "utf-8")) as f:
        w = csv.writer(f, **options)
        w.writerow(header)
        w.writerows(rows)


write("excel.csv")
write("unix.csv", dialect="unix")
write("semicolon.csv", delimiter=";", encoding="utf-8-sig")
write("tab.csv", dialect="excel-tab", lineterminator="\n")
