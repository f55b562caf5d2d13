"""What ``dpfrugal`` shows without arguments: what people come for, a command for each."""

OVERVIEW = """\
dpfrugal: private quantiles of data about people. No bounds to guess, an interval with every answer.

  a file             dpfrugal quantile requests.csv --column ms -q 0.5,0.99 --epsilon 1
  per group          dpfrugal quantile requests.csv --column ms --by endpoint --keys endpoints.txt -q 0.9 --epsilon 1
  all columns        dpfrugal describe flights.parquet --epsilon 1
  a stream           tail -f latencies.log | dpfrugal watch -q 0.99 --epsilon 1 --every 1m
  a metrics service  dpfrugal serve --demo --port 4318
  a budget           dpfrugal ledger add budget.db clicks-2026-11 --epsilon 3
  the paper          dpfrugal paper --quick

New here? "dpfrugal demo" makes a file and shows private answers beside the exact ones.
"dpfrugal --help" lists all commands, "dpfrugal COMMAND --help" explains one.
"""
