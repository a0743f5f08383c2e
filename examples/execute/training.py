"""One training step of a network under a plan: forward, loss, backward, update, stage by stage and micro-batch by micro-batch.

Every device runs its part of every operator, as `jax.shard_map` gives it; what moves between parts is written out (`layouts.move`), forward and backward.
The loss is the mean of what no operator reads. Nothing here knows what the plan predicts.
"""

import math

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import NamedSharding, PartitionSpec

from collectives import collectives_of
from jax_plan import partition_spec, state_axes, stored_axes
from layouts import move
from network import Part, compute
from parts import Unsupported, beside, states_of, terminals, trains, updated, wanted_spec, whole_shape

# Their gradients do not need what they read.
LINEAR = {"add", "subtract", "identity", "negate", "scale", "shift", "dropout", "cast", "reshape", "flatten", "transpose", "concat", "slice", "split",
          "average_pool2d", "average_global_pool", "reduce_sum", "reduce_mean"}
# Their gradients are functions of what they answer.
OF_OUTPUT = {"relu": lambda y, g: jnp.where(y > 0, g, 0), "sigmoid": lambda y, g: g * y * (1 - y), "tanh": lambda y, g: g * (1 - y * y),
             "exp": lambda y, g: g * y}


def on_one_device(document, parameters, batches):
    """Loss, gradients and updated parameters, by JAX's own differentiation of whole operators."""
    sizes = [{a["name"]: a["size"] for a in s["mesh"]} for s in document["stages"]]
    ends = terminals(document)

    def loss_of(parameters, batch):
        values = {(name, 0): value for name, value in batch.items()}
        for o in document["operators"]:
            outputs = compute(Part(o, sizes[o["stage"]], whole=True), [values[i["of"], i["output"]] for i in o["inputs"]],
                              [parameters[w["parameter"]] for w in o.get("weights", [])])
            values.update({(o["name"], n): v for n, v in enumerate(outputs)})
        return sum(values[e].mean() for e in ends)

    step = jax.jit(jax.value_and_grad(loss_of))
    device = jax.devices()[0]
    parameters = jax.device_put(parameters, device)
    loss, gradients = 0.0, None
    for batch in batches:
        value, g = step(parameters, jax.device_put(batch, device))
        loss += float(value) / len(batches)
        gradients = g if gradients is None else jax.tree.map(jnp.add, gradients, g)
    gradients = {name: g / len(batches) for name, g in gradients.items()}
    optimizer = document["optimizer"]
    new = {name: updated(optimizer, p, gradients[name], [jnp.zeros_like(p)] * states_of(optimizer))[0] for name, p in parameters.items()}
    return loss, jax.device_get(gradients), jax.device_get(new)


class Stage:
    """The programs of one stage: forward, backward, update. Tensors that pass between programs are stacked: the part of each device, along an axis in
    front of it."""

    def __init__(self, plan, number, training):
        self.plan, self.number, self.training = plan, number, training
        self.mesh = plan.mesh(number)
        self.sizes = dict(zip(self.mesh.axis_names, self.mesh.devices.shape))
        document = plan.document
        self.sharded = document["sharded"]
        self.operators = [o for o in document["operators"] if o["stage"] == number]
        self.parts = {o["name"]: Part(o, self.sizes) for o in self.operators}
        self.parameters = {p["name"]: p for p in document["parameters"] if p["stage"] == number}
        self.recompute = document["stages"][number]["recompute"]
        self.stacked = PartitionSpec(tuple(self.mesh.axis_names) or None)
        self.programs = {}
        self._read_graph()

    def _read_graph(self):
        """What each operator reads: keys of moved tensors (operator, output, spec, beside, segment)."""
        mine = self.parts
        self.reads, self.moved = {}, {}
        for o in self.operators:
            part, keys = mine[o["name"]], []
            for i in o["inputs"]:
                segment = o.get("segment", 0) if self.recompute else None
                key = (i["of"], i["output"], wanted_spec(part, i, f"'{i['name']}'"), beside(part, i), segment, i.get("gradient", True))
                keys.append(key)
                self.moved.setdefault(key, []).append(o["name"])
            self.reads[o["name"]] = keys
        inputs = {i["name"] for i in self.plan.document["inputs"]}
        # From other stages, where these readers do not compute it again from what they have.
        self.external = [k for k in self.moved if k[0] not in mine and k[0] not in inputs]
        self.from_inputs = [k for k in self.moved if k[0] in inputs]
        # What backward finds where forward left it.
        self.kept = []
        for key, readers in self.moved.items():
            needed = [r for r in readers if trains(self.parts[r].operator) and self._needs(self.parts[r].operator)]
            if not any(trains(self.parts[r].operator) for r in readers):
                continue
            again = [r for r in readers if self._again(r)]
            producer_again = key[0] in mine and self._again(key[0]) and mine[key[0]].operator.get("segment", 0) == key[4]
            if again and not producer_again or needed and not (len(again) == len(readers) and producer_again):
                self.kept.append(key)
        self.kept_outputs = [(o["name"], 0) for o in self.operators if o["kind"] in OF_OUTPUT and not self._again(o["name"])]

    def _again(self, name):
        return self.parts[name].operator.get("computed_again", False)

    @staticmethod
    def _needs(operator):
        return operator["kind"] not in LINEAR and operator["kind"] not in OF_OUTPUT

    def layout_of(self, name, output):
        o = self.parts[name].operator["outputs"][output]
        return tuple(map(tuple, o["spec"])), frozenset(o.get("partial", []))

    # Inside of shard_map.

    def _moved(self, key, values, moved, batch):
        if key not in moved:
            name, output, spec, *_ = key
            if name in batch:
                moved[key] = move(batch[name], (((),) * batch[name].ndim, frozenset()), spec, self.sizes)
            else:
                moved[key] = move(values[name, output], self.layout_of(name, output), spec, self.sizes)
        return moved[key]

    def _weights(self, operator, parameters, gathered):
        result = []
        for w in operator.get("weights", []):
            spec = tuple(map(tuple, w["spec"]))
            if (w["parameter"], spec) not in gathered:
                gathered[w["parameter"], spec] = move(parameters[w["parameter"]], (self._stored(w["parameter"]), frozenset()), spec, self.sizes)
            result.append(gathered[w["parameter"], spec])
        return result

    def _stored(self, parameter):
        return tuple(map(tuple, stored_axes(self.parameters[parameter], self.sharded)))

    def _state(self, parameter):
        return tuple(map(tuple, state_axes(self.parameters[parameter])))

    def _reduced_early(self, parameter):
        """Whether gradients are scattered behind every micro-batch."""
        return "state_spec" in self.parameters[parameter] and self.sharded not in ("none", "optimizer")

    def _run(self, operators, parameters, batch, moved, gathered, values):
        for o in operators:
            inputs = [self._moved(k, values, moved, batch) for k in self.reads[o["name"]]]
            outputs = compute(self.parts[o["name"]], inputs, self._weights(o, parameters, gathered))
            for n, v in enumerate(outputs):
                if v.shape != self.parts[o["name"]].shape(o["outputs"][n]):
                    raise ValueError(f"operator '{o['name']}' ({o['kind']}): a part has the shape {v.shape}, "
                                     f"{self.parts[o['name']].shape(o['outputs'][n])} by its dims")
                values[o["name"], n] = v

    def _forward(self, parameters, batch, received, wanted):
        values, moved = {}, dict(received)
        self._run(self.operators, parameters, batch, moved, {}, values)
        sent = {}
        for key, spec in wanted.items():
            sent[key] = move(values[key[0], key[1]], self.layout_of(key[0], key[1]), spec, self.sizes)
        ends = {}
        for name, output in self.training.ends:
            if name in self.parts:
                layout = self.layout_of(name, output)
                ends[name, output] = move(values[name, output], layout, layout[0], self.sizes).sum()
        kept = {k: moved[k] for k in self.kept} | {k: values[k] for k in self.kept_outputs}
        first = {}
        self.same_as = {k: first.setdefault(id(v), k) for k, v in kept.items()}
        return sent, {k: v for k, v in kept.items() if self.same_as[k] == k}, ends

    def _backward(self, parameters, batch, kept, gradients_sent):
        kept = {k: kept[first] for k, first in self.same_as.items()}
        moved, gathered, values = {k: kept[k] for k in self.kept}, {}, {k: kept[k] for k in self.kept_outputs}
        grads = {}  # of moved tensors, by key
        outer = {}
        for (name, output, *_), (layout, g) in gradients_sent.items():
            outer.setdefault((name, output), []).append((layout, g))
        weights = {}
        segments = sorted({o.get("segment", 0) for o in self.operators}, reverse=True) if self.recompute else [None]
        for segment in segments:
            chosen = [o for o in self.operators if segment is None or o.get("segment", 0) == segment]
            if segment is not None:
                self._run([o for o in chosen if self._again(o["name"])], parameters, batch, moved, gathered, values)
            for o in reversed(chosen):
                if trains(o):
                    self._backward_of(o, parameters, batch, moved, gathered, values, grads, outer, weights)
        result = {}
        for (name, spec, partial), g in weights.items():
            p = self.parameters[name]
            layout = (spec, partial)
            if spec == tuple(map(tuple, p["spec"])) and partial == frozenset(p["replicas"]):
                if self._reduced_early(name):
                    over = [a for names, own in zip(self._state(name), p["spec"]) for a in names if a not in own]
                    g = move(g, (spec, frozenset(over)), self._state(name), self.sizes)
                result[name, "partial"] = result.get((name, "partial"), 0) + g
            else:
                result[name, "whole"] = result.get((name, "whole"), 0) + move(g, layout, self._state(name), self.sizes)
        back = {k: g for k, g in grads.items() if k in self.external}
        return back, result

    def _backward_of(self, o, parameters, batch, moved, gathered, values, grads, outer, weights):
        part, name = self.parts[o["name"]], o["name"]
        outs = []
        for n, out in enumerate(o["outputs"]):
            spec, _ = self.layout_of(name, n)
            g = None
            if (name, n) in self.training.ends:
                g = jnp.full(part.shape(out), 1 / (math.prod(whole_shape(out)) * self.plan.micro_batches), jnp.float64)
            for key in [k for k in grads if k[0] == name and k[1] == n]:
                add = move(grads.pop(key), (key[2], key[3]), spec, self.sizes)
                g = add if g is None else g + add
            for layout, sent in outer.get((name, n), []):
                add = move(sent, layout, spec, self.sizes)
                g = add if g is None else g + add
            outs.append(jnp.zeros(part.shape(out), jnp.float64) if g is None else g)
        if o["kind"] in OF_OUTPUT:
            key = self.reads[name][0]
            g = OF_OUTPUT[o["kind"]](values[name, 0], outs[0])
            grads[key] = grads[key] + g if key in grads else g
            return
        keys, ins = self.reads[name], []
        for key, operand in zip(keys, o["inputs"]):
            if key[0] in batch:
                ins.append(self._moved(key, values, moved, batch))
            elif self._needs(o):
                ins.append(moved[key])
            else:
                ins.append(jnp.zeros(part.shape(operand), jnp.float64))
        ws = self._weights(o, parameters, gathered)
        chosen = [n for n, (key, v) in enumerate(zip(keys, ins)) if key[5] and jnp.issubdtype(v.dtype, jnp.floating)]

        def of(chosen_ins, ws):
            all_ins = list(ins)
            for n, v in zip(chosen, chosen_ins):
                all_ins[n] = v
            return compute(part, all_ins, ws)

        _, pull = jax.vjp(of, [ins[n] for n in chosen], ws)
        of_ins, of_ws = pull(outs)
        for n, g in zip(chosen, of_ins):
            grads[keys[n]] = grads[keys[n]] + g if keys[n] in grads else g
        for w, g in zip(o.get("weights", []), of_ws):
            key = (w["parameter"], tuple(map(tuple, w["spec"])), beside(part, w))
            weights[key] = weights[key] + g if key in weights else g

    def _update(self, parameters, states, accumulated):
        optimizer = self.plan.document["optimizer"]
        new, new_states, gradients = {}, {}, {}
        for name, p in self.parameters.items():
            own, state = tuple(map(tuple, p["spec"])), self._state(name)
            replicas = set(p["replicas"])
            g = 0
            if (name, "partial") in accumulated:
                if self._reduced_early(name):
                    left = frozenset(replicas - {a for names in state for a in names})
                    g = move(accumulated[name, "partial"], (state, left), state, self.sizes)
                else:
                    g = move(accumulated[name, "partial"], (own, frozenset(replicas)), state, self.sizes)
            if (name, "whole") in accumulated:
                g = g + accumulated[name, "whole"]
            mine = move(parameters[name], (self._stored(name), frozenset()), state, self.sizes)
            value, new_states[name] = updated(optimizer, mine, g, states[name])
            new[name] = move(value, (state, frozenset()), self._stored(name), self.sizes)
            gradients[name] = g
        return new, new_states, gradients

    # Programs.

    def _stack(self, tree):
        return jax.tree.map(lambda v: v[None], tree)

    def _unstack(self, tree):
        return jax.tree.map(lambda v: v[0], tree)

    def program(self, what, function, arguments, in_specs, out_specs):
        """Compiles once, counts calls, runs."""
        if what not in self.programs:
            mapped = jax.shard_map(function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
            compiled = jax.jit(mapped).lower(*arguments).compile()
            self.programs[what] = [compiled, 0]
        self.programs[what][1] += 1
        return self.programs[what][0](*arguments)

    def stored_specs(self):
        return {name: partition_spec(self._stored(name)) for name in self.parameters}

    def state_specs(self):
        return {name: [partition_spec(self._state(name))] * states_of(self.plan.document["optimizer"]) for name in self.parameters}

    def forward(self, parameters, batch, received, wanted):
        def run(parameters, batch, received):
            return self._stack(self._forward(parameters, batch, self._unstack(received), wanted))
        return self.program("forward", run, (parameters, batch, received), (self.stored_specs(), PartitionSpec(), self.stacked), self.stacked)

    def backward(self, parameters, batch, kept, sent, layouts):
        def run(parameters, batch, kept, sent):
            sent = {k: (layouts[k], g) for k, g in self._unstack(sent).items()}
            return self._stack(self._backward(parameters, batch, self._unstack(kept), sent))
        return self.program("backward", run, (parameters, batch, kept, sent), (self.stored_specs(), PartitionSpec(), self.stacked, self.stacked),
                            self.stacked)

    def update(self, parameters, states, accumulated):
        def run(parameters, states, accumulated):
            return self._update(parameters, states, self._unstack(accumulated))
        of_gradients = {name: partition_spec(self._state(name)) for name in self.parameters}
        return self.program("update", run, (parameters, states, accumulated), (self.stored_specs(), self.state_specs(), self.stacked),
                            (self.stored_specs(), self.state_specs(), of_gradients))

    def put(self, value, spec):
        return jax.device_put(value, NamedSharding(self.mesh, spec))

    def collectives(self):
        """Of one iteration: (kind, devices of a group, bytes) and how often."""
        counts = {}
        for compiled, calls in self.programs.values():
            for c, n in collectives_of(compiled.as_text()).items():
                counts[c] = counts.get(c, 0) + n * calls
        return counts


class Training:
    """A step under a plan. `sent_bytes`: between stages; `memory`: bytes of parameters, optimizer's states, gradients,
    and activations kept from forward until backward at the fullest moment, on a device of each group."""

    def __init__(self, plan):
        if any(l[0] == "weight_gradients" for l in plan.document["launches"]):
            raise Unsupported("orders with backward in two are not executed")
        self.plan, self.ends = plan, terminals(plan.document)
        self.stages = [Stage(plan, s, self) for s in range(len(plan.document["stages"]))]
        shapes = {s.mesh.devices.shape for s in self.stages}
        if len(shapes) > 1:
            raise Unsupported(f"stages on meshes of different shapes, {sorted(shapes)}, are not executed")
        self.home = {o["name"]: o["stage"] for o in plan.document["operators"]}
        # What each stage makes for others: by stage and key of the reader, (reading stage, spec on the mesh of the producer).
        self.wanted = [{} for _ in self.stages]
        self.readers = {}
        for s in self.stages:
            for key in s.external:
                maker = self.stages[self.home[key[0]]]
                self.wanted[maker.number][key + (s.number,)] = self._renamed(key[2], s, maker)
        self.groups = {s.number: plan.document["stages"][s.number]["first_device"] for s in self.stages}
        self.sent_bytes, self.most_kept = 0, dict.fromkeys(self.groups.values(), 0)

    @staticmethod
    def _renamed(spec, of, to):
        names = dict(zip(of.mesh.axis_names, to.mesh.axis_names))
        return tuple(tuple(names[a] for a in axes) for axes in spec)

    def _send(self, value, to):
        self.sent_bytes += value.nbytes
        return jax.device_put(value, NamedSharding(to.mesh, to.stacked))

    def step(self, parameters, batches):
        """Loss, gradients and updated parameters as whole arrays of numpy."""
        stages = self.stages
        own = [{n: s.put(parameters[n], spec) for n, spec in s.stored_specs().items()} for s in stages]
        states = [{n: [s.put(numpy.zeros(parameters[n].shape), spec) for spec in specs] for n, specs in s.state_specs().items()} for s in stages]
        used = [{i for o in s.operators for i in (x["of"] for x in o["inputs"])} for s in stages]
        placed = [[{n: s.put(v, PartitionSpec()) for n, v in b.items() if n in used[s.number]} for b in batches] for s in stages]
        received, kept, back, accumulated = {}, {}, {}, [{} for _ in stages]
        loss = 0.0
        holding = dict.fromkeys(self.most_kept, 0)  # by group of devices
        for what, number, m in self.plan.document["launches"]:
            s = stages[number]
            if what == "forward":
                arrived = {k: received.pop((m, number, k)) for k in s.external}
                sent, kept[m, number], ends = s.forward(own[number], placed[number][m], arrived, self.wanted[number])
                group = self.groups[number]
                holding[group] += sum(v.nbytes for v in kept[m, number].values()) // s.mesh.size
                self.most_kept[group] = max(self.most_kept[group], holding[group])
                for key, value in sent.items():
                    received[m, key[-1], key[:-1]] = self._send(value, stages[key[-1]])
                for (name, output), value in ends.items():
                    o = s.parts[name].operator["outputs"][output]
                    same = s.mesh.size // math.prod(s.sizes[a] for axes in o["spec"] for a in axes)
                    loss += float(value.sum()) / same / math.prod(whole_shape(o)) / len(batches)
            else:
                layouts, sent = {}, {}
                for key, spec in self.wanted[number].items():
                    if (m, key) in back:
                        reader = stages[key[-1]]
                        names = dict(zip(reader.mesh.axis_names, s.mesh.axis_names))
                        layouts[key] = (spec, frozenset(names[a] for a in key[3]))
                        sent[key] = self._send(back.pop((m, key)), s)
                holding[self.groups[number]] -= sum(v.nbytes for v in kept[m, number].values()) // s.mesh.size
                gradients, of_weights = s.backward(own[number], placed[number][m], kept.pop((m, number)), sent, layouts)
                for key, g in gradients.items():
                    back[m, key + (number,)] = g
                for key, g in of_weights.items():
                    accumulated[number][key] = accumulated[number][key] + g if key in accumulated[number] else g
        new, grads = {}, {}
        for s in stages:
            p, _, g = s.update(own[s.number], states[s.number], accumulated[s.number])
            new.update(jax.device_get(p))
            grads.update(jax.device_get(g))
        # The library has states of 4 bytes, these are of 8.
        self.memory = {"weights": self._by_group(own), "optimizer": [n // 2 for n in self._by_group(states)],
                       "gradients": self._by_group(accumulated), "activations": list(self.most_kept.values())}
        return loss, grads, new

    def _by_group(self, trees):
        """Bytes on one device of each group, of a tree for each stage."""
        out = dict.fromkeys(self.most_kept, 0)
        for s, tree in zip(self.stages, trees):
            out[self.groups[s.number]] += self._bytes(tree, s)
        return list(out.values())

    @staticmethod
    def _bytes(tree, stage):
        """On one device."""
        device = stage.mesh.devices.flat[0]
        return sum(shard.data.nbytes for v in jax.tree.leaves(tree) for shard in v.addressable_shards if shard.device == device)
