"""What requests may look like; FastAPI checks them and writes the OpenAPI document from them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

# About the years -29,000 to 33,000, in seconds since 1970: a typing error shall not stretch the timeline for ever.
FARTHEST_TIME = 1e12

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False, le=1e15)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class ItemIn(BaseModel):
    """One item: its features as a list or with weights, or a text, or a vector of numbers."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"id": "a1", "features": ["window", "cleaner"], "time": 1700000000}]},
    )

    id: Name | None = Field(None, description="Sending the same id again does not learn the item twice.")
    features: list[Name] | dict[Name, Weight] | None = Field(None, description="Names, or names with weights.")
    text: str | None = Field(None, description="Text, cut into words as the model's data was.")
    values: list[Number] | None = Field(None, min_length=1, description="A vector, for models of dense rows.")
    time: float | None = Field(
        None, ge=-FARTHEST_TIME, le=FARTHEST_TIME, allow_inf_nan=False, description="Seconds since 1970; default: now."
    )

    @model_validator(mode="after")
    def _one_of(self) -> ItemIn:
        if sum(part is not None for part in (self.features, self.text, self.values)) != 1:
            raise ValueError("give one of features, text and values")
        return self

    def plain(self) -> dict[str, Any]:
        """As it goes into the journal."""
        return self.model_dump(exclude_none=True)


class ItemsIn(BaseModel):
    """One or many items."""

    model_config = ConfigDict(extra="forbid")
    items: list[ItemIn] = Field(min_length=1)


class SuggestIn(BaseModel):
    """What is there already, what is not wanted, and how many suggestions."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"observed": ["window cleaner"], "rejected": [], "n": 10}]}
    )
    observed: list[Name] = Field(default_factory=list, max_length=10_000)
    rejected: list[Name] = Field(default_factory=list, max_length=10_000)
    n: int = Field(10, ge=1, le=1000)


class NameIn(BaseModel):
    """A name for a cluster; empty takes the name away."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "window cleaning"}]})
    name: Annotated[str, StringConstraints(max_length=1000)]


class PinIn(BaseModel):
    """Whether the cluster is kept whatever is learned."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"pinned": True}]})
    pinned: bool = True


class MergeIn(BaseModel):
    """Clusters that go into this one."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"clusters": [3, 7]}]})
    clusters: list[int] = Field(min_length=1, max_length=1000)


class SplitIn(BaseModel):
    """Nothing to say: a cluster is divided in two by its recent items."""

    model_config = ConfigDict(extra="forbid")


class UndoIn(BaseModel):
    """Which edit to undo: the newest that has not been undone."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"edit": 120}]})
    edit: int = Field(ge=1, le=2**62)
