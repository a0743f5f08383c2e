"""Reads what `plan --export jax` writes: the meshes, shardings and micro-batches of a plan, for a JAX program of one's own.

    plan = jax_plan.Plan("jax.json")
    w = jax.device_put(w, plan.sharding("fc1.weight"))       # a parameter
    y = plan.constrain(y, "fc1")                              # inside of jax.jit: what operator fc1 answers
"""

import json

import numpy
from jax import device_put, devices as all_devices
from jax.lax import with_sharding_constraint
from jax.sharding import Mesh, NamedSharding, PartitionSpec

FORMAT, VERSION = "parsearch.jax", 1


def partition_spec(axes):
    """Of a list of names of mesh axes per axis of a tensor."""
    return PartitionSpec(*(tuple(names) if names else None for names in axes))


def state_axes(parameter):
    """How what an optimizer keeps of a parameter is split."""
    return parameter.get("state_spec", parameter["spec"])


def stored_axes(parameter, sharded):
    """How a parameter is split between steps: with parameters that replicas share (FSDP), each has a part."""
    return state_axes(parameter) if sharded.startswith("parameters") else parameter["spec"]


class Plan:
    """`devices`: those to run on, as many as the plan has; by default the first that JAX has."""

    def __init__(self, path_or_document, devices=None):
        document = path_or_document
        if not isinstance(document, dict):
            with open(path_or_document, encoding="utf-8") as file:
                document = json.load(file)
        if (document.get("format"), document.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"{document.get('format')!r} of version {document.get('version')!r}: must be {FORMAT!r} of version {VERSION}")
        self.document = document
        self.devices = list(all_devices() if devices is None else devices)[:document["devices"]]
        if len(self.devices) < document["devices"]:
            raise ValueError(f"the plan is for {document['devices']} devices: JAX has {len(self.devices)}")
        self.micro_batches = document["micro_batches"]
        self.parameters = {p["name"]: p for p in document["parameters"]}
        self.operators = {o["name"]: o for o in document["operators"]}
        self.meshes = [self._mesh(stage) for stage in document["stages"]]

    def _mesh(self, stage):
        sizes = [axis["size"] for axis in stage["mesh"]]
        first, count = stage["first_device"], int(numpy.prod(sizes, dtype=int))
        return Mesh(numpy.array(self.devices[first:first + count]).reshape(sizes), [axis["name"] for axis in stage["mesh"]])

    def mesh(self, stage=0):
        return self.meshes[stage]

    def sharding(self, parameter):
        """Where a parameter is between steps."""
        p = self.parameters[parameter]
        return NamedSharding(self.meshes[p["stage"]], partition_spec(stored_axes(p, self.document["sharded"])))

    def state_sharding(self, parameter):
        """Where what an optimizer keeps of a parameter is."""
        p = self.parameters[parameter]
        return NamedSharding(self.meshes[p["stage"]], partition_spec(state_axes(p)))

    def constrain(self, value, operator, output=0):
        """`value`, which `operator` answers, sharded as the plan has it. Behind a product whose sum is split this is where the sum is made."""
        o = self.operators[operator]
        return with_sharding_constraint(value, NamedSharding(self.meshes[o["stage"]], partition_spec(o["outputs"][output]["spec"])))

    def put(self, parameters):
        """A dictionary of parameters, each where the plan has it."""
        return {name: device_put(value, self.sharding(name)) for name, value in parameters.items()}
