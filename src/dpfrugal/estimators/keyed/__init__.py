"""``KeyedDPFrugal1U``: the walk for every key of a stream under one guarantee."""
