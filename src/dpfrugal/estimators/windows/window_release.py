"""``WindowRelease``: private quantiles of the items of one window, and what is public about them."""

from dataclasses import dataclass, fields

from dpfrugal.estimators.table.release import TableRelease


@dataclass(frozen=True, kw_only=True)
class WindowRelease(TableRelease):
    """Released from the items since the last release; ``window`` counts releases from 1.

    ``items``, the number of items in the window, is None under ``neighbours="add-remove"``, which keeps it private. The
    guarantee holds for an item however many windows are released, as each item is in one window; for a person see
    ``unit``.

    >>> import dpfrugal as dpf
    >>> window = dpf.WindowQuantile(0.5, dpf.PureDP(epsilon=1.0))
    >>> window.update_many([7] * 1_000)
    >>> release = window.release()
    >>> release.window, release.value, release.items, release.unit
    (1, 7.0, 1000, 'item')
    """

    window: int

    @property
    def unit(self) -> str:
        """Whose change the guarantee hides."""
        return unit_of(self.max_items_per_person, None, self.plan.asked.windows, has_persons=self.has_persons)

    def to_dict(self) -> dict[str, object]:
        """For JSON, with the window's number."""
        return super().to_dict() | {"window": self.window}


def window_release(release: TableRelease, window: int, *, has_persons: bool) -> WindowRelease:
    """The release of a table as that of a window."""
    same = {field.name: getattr(release, field.name) for field in fields(release)}
    return WindowRelease(window=window, **same | {"has_persons": has_persons})


def unit_of(
    max_items_per_person: int, max_keys_per_person: int | None, windows: int, *, has_persons: bool = False
) -> str:
    """Whose change a guarantee hides: an item's, or those of a person in a window, or in each of so many windows."""
    if max_items_per_person == 1 and max_keys_per_person is None and windows == 1 and not has_persons:
        return "item"
    unit = f"person of ≤ {max_items_per_person} item{'s' * (max_items_per_person > 1)}"
    if max_keys_per_person is not None:
        unit += f" in each of ≤ {max_keys_per_person} keys"
    return f"{unit} per window" if windows == 1 else f"{unit} per window, in ≤ {windows} windows"
