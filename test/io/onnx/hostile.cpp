/// Thousands of damaged models: each must end in a result or a refusal that names the file, soon and within bounded memory.

#include <parsearch/io/onnx.hpp>

#include <chrono>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <tuple>

#include <sys/resource.h>

#include "support/external_data.hpp"
#include "support/onnx_models.hpp"
#include "support/onnx_mutations.hpp"
#include "support/project.hpp"

namespace io = parsearch::io;

namespace {

/// Damaged copies of each model that the test builds, and of each file.
constexpr int per_model = 1500;
constexpr int per_file = 25;

struct outcome {
    int read = 0, refused = 0;
};

/// Reads `bytes`; anything but a model or an `invalid_input` beginning with the name fails the test.
void try_to_read(std::string const& bytes, io::onnx_options const& options, outcome& so_far) {
    std::istringstream in(bytes);
    try {
        auto const model = io::read_onnx(in, "damaged", options);
        CHECK(model.graph.size() > 0);
        ++so_far.read;
    } catch (parsearch::invalid_input const& e) {
        CHECK(std::string_view(e.what()).starts_with("damaged: "));
        CHECK(std::string_view(e.what()).size() < 100000);
        ++so_far.refused;
    }
}

outcome damage_many(std::string const& bytes, io::onnx_options options, int times, std::uint64_t seed) {
    std::mt19937_64 rng(seed);
    support::message_mutator mutate(rng);
    outcome out;
    for (int i = 0; i < times; ++i) {
        auto damaged = bytes;
        if (i % 3 == 0) {
            for (auto changes = 1 + rng() % 4; changes > 0; --changes) support::damage(damaged, rng);
        } else {
            io::onnx::pb::ModelProto model;
            REQUIRE(model.ParseFromString(bytes));
            for (auto changes = 1 + rng() % 3; changes > 0; --changes) mutate(model);
            damaged = model.SerializeAsString();
        }
        options.recognise = rng() % 2 == 0;
        options.replicate_unknown = rng() % 2 == 0;
        options.batch = rng() % 2 == 0 ? std::optional<std::int64_t>{4} : std::nullopt;
        try_to_read(damaged, options, out);
    }
    return out;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The most memory that the process has had, in MiB.
long peak_memory() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss / 1024;
}

std::map<std::string, std::int64_t> symbols_of(io::onnx::pb::ModelProto const& model) {
    std::map<std::string, std::int64_t> dims;
    for (auto const& i : model.graph().input())
        for (auto const& d : i.type().tensor_type().shape().dim())
            if (d.has_dim_param() && d.dim_param() != "batch") dims.emplace(d.dim_param(), 16);
    return dims;
}

/// Damages each model of a folder.
void damage_files(std::filesystem::path const& folder, std::uint64_t seed) {
    std::vector<std::filesystem::path> files;
    for (auto const& f : std::filesystem::directory_iterator(folder))
        if (f.path().extension() == ".onnx") files.push_back(f.path());
    REQUIRE(!files.empty());
    std::sort(files.begin(), files.end());
    for (auto const& file : files) {
        std::ifstream in(file, std::ios::binary);
        std::string const bytes{std::istreambuf_iterator<char>(in), {}};
        io::onnx::pb::ModelProto model;
        REQUIRE(model.ParseFromString(bytes));
        auto const begin = std::chrono::steady_clock::now();
        auto const out = damage_many(bytes, {.dims = symbols_of(model)}, per_file, ++seed);
        MESSAGE(file.filename().string(), ", seed ", seed, ": ", out.read, " read, ", out.refused, " refused, ", seconds_since(begin), " s");
    }
    CHECK(peak_memory() < 1500);
}

} // namespace

TEST_CASE("damaged small models are read or refused") {
    std::uint64_t seed = 20;
    for (auto const& m : {support::small_convolution(), support::small_attention(), support::small_mixture()}) {
        io::onnx_options options{.dims = symbols_of(m.model)};
        outcome whole;
        options.batch = 4;
        try_to_read(m.bytes(), options, whole);
        CHECK(whole.read == 1);
        auto const begin = std::chrono::steady_clock::now();
        auto const out = damage_many(m.bytes(), options, per_model, ++seed);
        MESSAGE("seed ", seed, ": ", out.read, " read, ", out.refused, " refused, ", seconds_since(begin), " s, peak ", peak_memory(), " MiB");
        CHECK(out.read > per_model / 50); // much damage is harmless
        CHECK(out.refused > per_model / 5);
    }
    CHECK(peak_memory() < 1500);
}

TEST_CASE("damaged files are read or refused") { damage_files(support::project_file("examples/models"), 40); }

TEST_CASE("data: damaged files of the ONNX project are read or refused") {
    if (auto const folder = support::external_data("onnx")) damage_files(*folder, 45);
}

TEST_CASE("every operator that ONNX defines, with inputs and attributes that make no sense") {
    constexpr std::int64_t odd[] = {0, 1, -1, 2, 3, 4, 5, -2, 7, 16, 1 << 20, std::int64_t{1} << 31, std::int64_t{1} << 40, -(std::int64_t{1} << 62)};
    std::mt19937_64 rng(60);
    auto const below = [&](std::uint64_t n) { return static_cast<int>(rng() % n); };
    auto const number = [&] { return odd[below(below(3) == 0 ? 14 : 5)]; };
    auto const numbers = [&] {
        std::vector<std::int64_t> v(static_cast<std::size_t>(below(6)));
        for (auto& x : v) x = number();
        return v;
    };
    outcome out;
    auto schemas = io::onnx::pb::OpSchemaRegistry::get_all_schemas_with_history();
    auto const order = [](auto const& s) { return std::tuple(s.domain(), s.Name(), s.SinceVersion()); };
    std::sort(schemas.begin(), schemas.end(), [&](auto const& a, auto const& b) { return order(a) < order(b); });
    for (auto const& schema : schemas) {
        for (int k = 0; k < 20 && schema.domain().empty(); ++k) {
            support::onnx_model_builder m(std::max(9, schema.SinceVersion()) + (below(10) == 0 ? 10 : 0));
            m.input("d", {2, 3});
            std::vector<std::string> in, results;
            for (int i = schema.min_input() + below(3); i > 0; --i) {
                auto const name = "i" + std::to_string(i);
                in.push_back(below(12) == 0 ? "" : name);
                if (below(2) == 0) m.ints(name, numbers());
                else {
                    std::vector<support::onnx_dim> dims(static_cast<std::size_t>(below(6)));
                    for (auto& d : dims) d = std::int64_t{1 + below(5)};
                    m.input(name, dims, below(3) == 0 ? io::onnx::pb::TensorProto::INT64 : io::onnx::pb::TensorProto::FLOAT);
                }
            }
            for (int i = std::max(1, schema.min_output()); i > 0; --i) results.push_back("o" + std::to_string(i));
            std::vector<support::onnx_attribute> attributes;
            for (auto const& [name, a] : std::map(schema.attributes().begin(), schema.attributes().end())) {
                if (!a.required && below(2) == 0) continue;
                using kind = io::onnx::pb::AttributeProto;
                if (a.type == kind::INT) attributes.emplace_back(name, number());
                else if (a.type == kind::INTS) attributes.emplace_back(name, numbers());
                else if (a.type == kind::FLOAT) attributes.emplace_back(name, 0.5 * below(4));
                else if (a.type == kind::FLOATS) attributes.emplace_back(name, std::vector<double>(static_cast<std::size_t>(below(5)), 0.5));
                else if (a.type == kind::STRING) attributes.emplace_back(name, std::string(below(2) == 0 ? "SAME_UPPER" : "...ij,jk->i"));
            }
            m.node(schema.Name(), in, results, attributes);
            for (auto const& o : results) m.output(o);
            try_to_read(m.bytes(), {.recognise = below(2) == 0, .replicate_unknown = below(2) == 0}, out);
        }
    }
    MESSAGE("seed 60: ", out.read, " read, ", out.refused, " refused");
    CHECK(out.read > 20);
    CHECK(out.refused > 2000);
}

TEST_CASE("files that promise much are refused soon") {
    auto const begin = std::chrono::steady_clock::now();
    outcome out;
    using model = support::onnx_model_builder;
    { // tensors of many elements that each node makes anew
        model m;
        m.input("x", {1}).ints("wide", {65536}).ints("one", {1});
        for (int i = 0; i < 3000; ++i) m.node("Expand", {"one", "wide"}, {"c" + std::to_string(i)}).output("c" + std::to_string(i));
        m.node("Relu", {"x"}, {"y"}).output("y");
        try_to_read(m.bytes(), {}, out);
    }
    { // thousands of axes
        model m;
        std::vector<support::onnx_dim> dims(100000, std::int64_t{1});
        try_to_read(m.input("x", dims).node("Relu", {"x"}, {"y"}).output("y").bytes(), {}, out);
    }
    { // an attribute of a million entries
        model m;
        m.input("x", {1, 2, 3, 4}).node("Transpose", {"x"}, {"y"}, {{"perm", std::vector<std::int64_t>(1000000, 0)}}).output("y");
        try_to_read(m.bytes(), {}, out);
    }
    { // a chain of products that leaves 64 bits
        model m;
        m.input("x", {1 << 20});
        for (int i = 0; i < 20; ++i) m.node("MatMul", {"v" + std::to_string(i), "v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
        m.node("Identity", {"x"}, {"v0"}).output("v20");
        try_to_read(m.bytes(), {}, out);
    }
    { // extents that are each allowed and together are not
        model m;
        m.input("x", {std::int64_t{1} << 40, std::int64_t{1} << 40}).node("Relu", {"x"}, {"y"}).output("y");
        try_to_read(m.bytes(), {}, out);
    }
    { // one sum of very many
        model m;
        m.input("x", {4});
        m.node("Sum", std::vector<std::string>(100000, "x"), {"y"}).output("y");
        try_to_read(m.bytes(), {}, out);
    }
    { // names that grow with the depth of the calls
        model m(15);
        m.import("mine", 1).input("x", {2});
        for (int level = 0; level < 31; ++level) {
            auto& f = *m.model.add_functions();
            f.set_name("f" + std::to_string(level));
            f.set_domain("mine");
            f.add_input("a");
            f.add_output("b");
            *f.add_opset_import() = m.model.opset_import(0);
            *f.add_opset_import() = m.model.opset_import(1);
            auto n = model::make_node(level == 30 ? "Relu" : "f" + std::to_string(level + 1), {"a"}, {"b"}, {}, level == 30 ? "" : "mine");
            n.set_name(std::string(1000, 'n'));
            *f.add_node() = n;
        }
        try_to_read(m.node("f0", {"x"}, {"y"}, {}, "mine").output("y").bytes(), {}, out);
    }
    MESSAGE(out.read, " read, ", out.refused, " refused, ", seconds_since(begin), " s, peak ", peak_memory(), " MiB");
    CHECK(seconds_since(begin) < 60);
    CHECK(peak_memory() < 1500);
}
