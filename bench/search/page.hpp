#pragma once
/// The comparison of searches as one HTML page that needs nothing else: a table over all cases, and curves and a table for each.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <parsearch/io/text/stream_text.hpp>

#include "../page_style.hpp"
#include "statistics.hpp"

namespace bench {

namespace detail {

inline constexpr std::string_view curve_style =
    ".median { fill: none; stroke-width: 2; stroke-linejoin: round; } .band { stroke: none; opacity: 0.16; }\n";

// Eight colours, then again with dashes; told apart by the dashes and the legend without colour too.
inline std::string colour(std::size_t algorithm) { return fmt::format("var(--c{})", algorithm % 8); }
inline std::string_view dashes(std::size_t algorithm) {
    constexpr std::string_view kinds[] = {"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\"", " stroke-dasharray=\"9 3 2 3\""};
    return kinds[algorithm / 8 % 4];
}

inline std::string percent(double gap) { return gap == never ? "infeasible" : fmt::format("{:.2f} %", 100 * gap); }
inline std::string seconds_text(double s) {
    if (s == never) return "never";
    return s < 1 ? fmt::format("{:.1f} ms", 1e3 * s) : fmt::format("{:.2f} s", s);
}
inline std::string count_text(double n) {
    return n < 1e4 ? fmt::format("{:.0f}", n) : n < 1e6 ? fmt::format("{:.1f} k", n / 1e3) : fmt::format("{:.2f} M", n / 1e6);
}

/// One chart: medians and quartiles of the gap over a logarithmic axis.
class chart {
  public:
    static constexpr double width = 560, height = 300, left = 56, right = 548, top = 14, bottom = 262;

    chart(case_rows const& k, std::vector<std::string> const& algorithms, double first, double last, bool of_time)
        : case_(&k), algorithms_(&algorithms), first_(first), last_(std::max(last, first * 10)), of_time_(of_time) {
        for (auto const& s : k.of_algorithm)
            for (auto const* const r : s.runs)
                for (auto const& p : r->curve)
                    if (auto const gap = k.gap(p.cost); gap != never) highest_ = std::max(highest_, gap);
    }

    void write(ps::io::text_writer& out, std::string const& id) const {
        auto const what = of_time_ ? "seconds" : "evaluations";
        out.add("<svg viewBox=\"0 0 560 300\" role=\"img\" aria-labelledby=\"", id, "-t ", id, "-d\"><title id=\"", id, "-t\">",
                ps::io::html_text(fmt::format("{} on {}: gap to the best known cost over {}", case_->model, case_->cluster, what)),
                "</title><desc id=\"", id,
                "-d\">Median over the seeds, with the band between the quartiles; the table below has the final figures.</desc>\n");
        // Two digits of the step from one line to the next.
        auto const digits = std::clamp(static_cast<int>(1 - std::floor(std::log10(25 * highest_))), 0, 6);
        for (int n = 0; n <= 4; ++n) {
            double const gap = highest_ * n / 4;
            out.add(fmt::format("<path class=\"{0}\" d=\"M{1} {2:.1f}H{3}\"/><text x=\"{4}\" y=\"{5:.1f}\" text-anchor=\"end\">{6:.{7}f} %</text>\n",
                                n == 0 ? "axis" : "grid", left, y_of(gap), right, left - 6, y_of(gap) + 4, 100 * gap, digits));
        }
        for (double power = std::ceil(std::log10(first_) - 1e-9); power <= std::log10(last_) + 1e-9; ++power) {
            double const x = std::pow(10, power);
            out.add(fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
                                x_of(x), top, bottom, bottom + 16, of_time_ ? seconds_label(x) : count_label(x)));
        }
        out.add(fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", right, bottom + 34, what));
        for (auto const& s : case_->of_algorithm) draw(out, s);
        out.add("</svg>\n");
    }

  private:
    static std::string seconds_label(double x) { return x < 1 ? fmt::format("{:g} ms", 1e3 * x) : fmt::format("{:g} s", x); }
    static std::string count_label(double x) {
        return x < 1e3 ? fmt::format("{:g}", x) : x < 1e6 ? fmt::format("{:g} k", x / 1e3) : fmt::format("{:g} M", x / 1e6);
    }
    [[nodiscard]] double x_of(double x) const { return left + (right - left) * std::log(x / first_) / std::log(last_ / first_); }
    [[nodiscard]] double y_of(double gap) const { return bottom - (bottom - top) * std::min(gap, highest_) / highest_; }

    void draw(ps::io::text_writer& out, series const& s) const {
        constexpr int steps = 120;
        std::string median, above, below;
        for (int n = 0; n <= steps; ++n) {
            double const x = first_ * std::pow(last_ / first_, static_cast<double>(n) / steps);
            auto const q = of_time_ ? gap_at(*case_, s, x, [](point const& p) { return p.seconds; })
                                    : gap_at(*case_, s, x, [](point const& p) { return static_cast<double>(p.evaluations); });
            if (q.median == never) continue; // no feasible strategy is known yet
            median += fmt::format("{}{:.1f} {:.1f}", median.empty() ? "M" : "L", x_of(x), y_of(q.median));
            above += fmt::format("{}{:.1f} {:.1f}", above.empty() ? "M" : "L", x_of(x), y_of(q.high));
            below.insert(0, fmt::format("L{:.1f} {:.1f}", x_of(x), y_of(q.low)));
        }
        if (median.empty()) return;
        auto const number = static_cast<std::size_t>(std::find(algorithms_->begin(), algorithms_->end(), s.algorithm) - algorithms_->begin());
        auto const name = ps::io::html_text(s.algorithm);
        out.add("<path class=\"band\" fill=\"", colour(number), "\" d=\"", above, below, "Z\"/><path class=\"median\" stroke=\"", colour(number), '"',
                dashes(number), " d=\"", median, "\"><title>", name, "</title></path>\n");
    }

    case_rows const* case_;
    std::vector<std::string> const* algorithms_;
    double first_, last_, highest_ = 1e-6;
    bool of_time_;
};

inline void write_name(ps::io::text_writer& out, std::vector<std::string> const& algorithms, std::string const& name) {
    auto const number = static_cast<std::size_t>(std::find(algorithms.begin(), algorithms.end(), name) - algorithms.begin());
    out.add("<th scope=\"row\"><svg class=\"key\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"median\" stroke=\"", colour(number), '"',
            dashes(number), " d=\"M0 5H26\"/></svg>", ps::io::html_text(name), "</th>");
}

inline void write_overview(ps::io::text_writer& out, std::vector<case_rows> const& cases, std::vector<std::string> const& algorithms) {
    out.add("<h2 id=\"all\">All cases</h2>\n<p>Over the medians of the cases on which an algorithm ran. Best of all: cases in which no other has a "
            "smaller "
            "median gap.</p>\n<div class=\"scroll\"><table id=\"overview\"><thead><tr><th scope=\"col\">algorithm</th><th scope=\"col\" "
            "class=\"n\">mean final gap</th>"
            "<th scope=\"col\" class=\"n\">best of all</th><th scope=\"col\" class=\"n\">cases</th><th scope=\"col\" class=\"n\">runs within 1 "
            "%</th></tr></thead><tbody>\n");
    for (auto const& name : algorithms) {
        double sum = 0;
        std::size_t count = 0, won = 0, reached = 0, runs = 0;
        for (auto const& k : cases) {
            double least = never, own = never;
            bool here = false;
            for (auto const& s : k.of_algorithm) {
                auto const f = figures_of(k, s);
                least = std::min(least, f.gap.median);
                if (s.algorithm != name) continue;
                here = true;
                own = f.gap.median;
                reached += f.reached;
                runs += f.runs;
            }
            if (!here) continue;
            ++count;
            sum += std::log1p(own);
            won += own <= least;
        }
        out.add("<tr>");
        write_name(out, algorithms, name);
        auto const mean = std::isfinite(sum) ? std::expm1(sum / static_cast<double>(count)) : never;
        out.add(fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{} of {}</td></tr>\n",
                            percent(mean), won, count, reached, runs));
    }
    out.add("</tbody></table></div>\n");
}
} // namespace detail

/// Writes the page. The same comparison makes the same bytes. Throws `invalid_input` where the stream fails.
inline void write_page(std::ostream& stream, comparison const& c) {
    auto const cases = cases_of(c);
    std::vector<std::string> algorithms;
    for (auto const& r : c.runs)
        if (std::find(algorithms.begin(), algorithms.end(), r.algorithm) == algorithms.end()) algorithms.push_back(r.algorithm);
    ps::io::text_writer out(stream);
    out.add(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n"
        "<title>Searches compared</title>\n<style>",
        page_style, detail::curve_style, "</style>\n</head>\n<body>\n<main>\n<h1>Searches compared</h1>\n<p>",
        fmt::format("{} algorithms, {} cases, {} runs of at most {:g} s each.", algorithms.size(), cases.size(), c.runs.size(), c.seconds),
        " The gap is how much the cost of the best strategy so far is above the least that any run of the case found. All start from the cheapest "
        "expert's strategy. Lines are medians over the seeds, bands reach from quartile to quartile.</p>\n");
    detail::write_overview(out, cases, algorithms);
    for (std::size_t n = 0; n < cases.size(); ++n) {
        auto const& k = cases[n];
        double most = 10;
        for (auto const& s : k.of_algorithm)
            for (auto const* const r : s.runs) most = std::max(most, static_cast<double>(r->evaluations));
        out.add("<h2>", ps::io::html_text(k.model), " on ", ps::io::html_text(k.cluster),
                "</h2>\n<p>Best known: ", fmt::format("{:.4g} ms", 1e-9 * static_cast<double>(k.best)),
                " per iteration.</p>\n<div class=\"curves\">\n");
        detail::chart(k, algorithms, 1e-3, c.seconds, true).write(out, fmt::format("time{}", n));
        detail::chart(k, algorithms, 1, most, false).write(out, fmt::format("evaluations{}", n));
        out.add("</div>\n<div class=\"scroll\"><table class=\"case\"><thead><tr><th scope=\"col\">algorithm</th><th scope=\"col\" class=\"n\">final "
                "gap, median</th>"
                "<th scope=\"col\" class=\"n\">lower quartile</th><th scope=\"col\" class=\"n\">upper quartile</th><th scope=\"col\" "
                "class=\"n\">best, ms</th>"
                "<th scope=\"col\" class=\"n\">evaluations / s</th><th scope=\"col\" class=\"n\">to within 1 %</th><th scope=\"col\" "
                "class=\"n\">runs that reach it</th>"
                "<th scope=\"col\" class=\"n\">length</th></tr></thead><tbody>\n");
        for (auto const& s : k.of_algorithm) {
            auto const f = figures_of(k, s);
            out.add("<tr>");
            detail::write_name(out, algorithms, s.algorithm);
            out.add(fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.4g}</td><td "
                                "class=\"n\">{}</td><td class=\"n\">{}</td>"
                                "<td class=\"n\">{} of {}</td><td class=\"n\">{}</td></tr>\n",
                                detail::percent(f.gap.median), detail::percent(f.gap.low), detail::percent(f.gap.high),
                                1e-9 * static_cast<double>(f.best), detail::count_text(f.evaluations_per_s), detail::seconds_text(f.to_one_percent),
                                f.reached, f.runs, detail::seconds_text(f.seconds)));
        }
        out.add("</tbody></table></div>\n");
    }
    out.add("</main>\n</body>\n</html>\n");
    out.finish("the page");
}

} // namespace bench
