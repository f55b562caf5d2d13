"""``dpfrugal serve``: private percentiles of a stream of metrics, window by window, as a service.

Items come in over OTLP, StatsD and JSON lines (``ingest/``), are held until the end of their window (``open_window``),
and leave it once, as private quantiles per key, on a public clock (``clock``, ``server``). What was released is stored
(``store``) and shown (``exposition``, ``web/``, ``page/``); nothing that is asked of the server computes anything.
"""
