#pragma once
/// The comparison of searches as one HTML page that needs nothing else: which is best in which class, performance profiles, and curves of each
/// instance.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
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

    chart(case_rows const& k, std::vector<std::string> const& searches, double first, double last, bool of_time)
        : case_(&k), searches_(&searches), first_(first), last_(std::max(last, first * 10)), of_time_(of_time) {
        for (auto const& s : k.of_search)
            for (auto const* const r : s.runs)
                for (auto const& p : r->curve)
                    if (auto const gap = k.gap(p.cost); gap != never) highest_ = std::max(highest_, gap);
    }

    void write(ps::io::text_writer& out, std::string const& id) const {
        auto const what = of_time_ ? "seconds" : "evaluations";
        out.add("<svg viewBox=\"0 0 560 300\" role=\"img\" aria-labelledby=\"", id, "-t ", id, "-d\"><title id=\"", id, "-t\">",
                ps::io::html_text(fmt::format("{}: gap to the best known cost over {}", case_->of->name, what)), "</title><desc id=\"", id,
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
        for (auto const& s : case_->of_search) draw(out, s);
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
        if (!of_time_ && std::ranges::all_of(s.runs, [](auto const* r) { return r->evaluations == 0; })) return; // they are not counted
        constexpr int steps = 60;
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
        auto const number = static_cast<std::size_t>(std::find(searches_->begin(), searches_->end(), s.search) - searches_->begin());
        auto const name = ps::io::html_text(s.search);
        out.add("<path class=\"band\" fill=\"", colour(number), "\" d=\"", above, below, "Z\"/><path class=\"median\" stroke=\"", colour(number), '"',
                dashes(number), " d=\"", median, "\"><title>", name, "</title></path>\n");
    }

    case_rows const* case_;
    std::vector<std::string> const* searches_;
    double first_, last_, highest_ = 1e-6;
    bool of_time_;
};

inline void write_name(ps::io::text_writer& out, std::vector<std::string> const& searches, std::string const& name) {
    auto const number = static_cast<std::size_t>(std::find(searches.begin(), searches.end(), name) - searches.begin());
    out.add("<th scope=\"row\"><svg class=\"key\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"median\" stroke=\"", colour(number), '"',
            dashes(number), " d=\"M0 5H26\"/></svg>", ps::io::html_text(name), "</th>");
}

/// What is said of a search over several instances.
struct summary {
    double log_gap = 0, area = 0;
    std::size_t instances = 0, won = 0, reached = 0, runs = 0;
    std::size_t counted = 0; ///< instances of which there is an area

    [[nodiscard]] double gap() const { return std::isfinite(log_gap) ? std::expm1(log_gap / static_cast<double>(instances)) : never; }
};
[[nodiscard]] inline summary summary_of(std::vector<case_rows> const& cases, std::string const& search, double last, std::string_view group) {
    summary out;
    for (auto const& k : cases) {
        if (!group.empty() && k.of->group != group) continue;
        double least = never;
        std::optional<double> own;
        for (auto const& s : k.of_search) {
            auto const f = figures_of(k, s);
            least = std::min(least, f.gap.median);
            if (s.search != search) continue;
            own = f.gap.median;
            if (auto const area = area_under(k, s, last)) out.area += *area, ++out.counted;
            out.reached += f.reached;
            out.runs += f.runs;
        }
        if (!own) continue;
        ++out.instances;
        out.log_gap += std::log1p(*own);
        out.won += *own != never && *own <= least;
    }
    return out;
}

inline void write_overview(ps::io::text_writer& out, std::vector<case_rows> const& cases, std::vector<std::string> const& searches, double last) {
    out.add(
        "<h2 id=\"all\">All instances</h2>\n<p>Gaps are medians over the seeds, averaged over the instances on which a search runs (geometric, of "
        "cost over best known). Best of all: instances in which no other has a smaller gap. Area: the mean gap on the way, over the logarithm of "
        "evaluations. Against ",
        ps::io::html_text(searches.front()),
        ": runs of the same instance and seed that end better or worse, and how probable that is by chance (two-sided sign test).</p>\n<div "
        "class=\"scroll\"><table id=\"overview\"><thead><tr><th scope=\"col\">search</th>");
    for (auto const* const head : {"mean final gap", "best of all", "instances", "runs within 1 %", "area", "better", "worse", "p"})
        out.add("<th scope=\"col\" class=\"n\">", head, "</th>");
    out.add("</tr></thead><tbody>\n");
    for (auto const& name : searches) {
        auto const all = summary_of(cases, name, last, {});
        auto const against = duel_of(cases, name, searches.front());
        out.add("<tr>");
        write_name(out, searches, name);
        out.add(fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{} of {}</td><td "
                            "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                            percent(all.gap()), all.won, all.instances, all.reached, all.runs,
                            all.counted > 0 ? percent(all.area / static_cast<double>(all.counted)) : std::string(), against.better, against.worse,
                            name == searches.front() ? std::string() : fmt::format("{:.2g}", against.p())));
    }
    out.add("</tbody></table></div>\n");
}

/// Mean final gaps, class by class, the least of each marked.
inline void write_classes(ps::io::text_writer& out, std::vector<case_rows> const& cases, std::vector<std::string> const& searches, double last) {
    std::vector<std::string> groups;
    for (auto const& k : cases)
        if (std::find(groups.begin(), groups.end(), k.of->group) == groups.end()) groups.push_back(k.of->group);
    out.add("<h2 id=\"classes\">Which search where</h2>\n<p>Mean final gap by class; the least of each class is bold.</p>\n<div "
            "class=\"scroll\"><table id=\"by_class\"><thead><tr><th scope=\"col\">search</th>");
    std::vector<double> least(groups.size(), never);
    std::vector<std::vector<std::optional<double>>> gaps(searches.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
        out.add("<th scope=\"col\" class=\"n\">", ps::io::html_text(groups[g]), "</th>");
        for (std::size_t n = 0; n < searches.size(); ++n) {
            auto const all = summary_of(cases, searches[n], last, groups[g]);
            gaps[n].push_back(all.instances > 0 ? std::optional(all.gap()) : std::nullopt);
            if (gaps[n].back()) least[g] = std::min(least[g], *gaps[n].back());
        }
    }
    out.add("</tr></thead><tbody>\n");
    for (std::size_t n = 0; n < searches.size(); ++n) {
        out.add("<tr>");
        write_name(out, searches, searches[n]);
        for (std::size_t g = 0; g < groups.size(); ++g) {
            auto const shown = gaps[n][g] ? percent(*gaps[n][g]) : std::string();
            bool const best = gaps[n][g] && *gaps[n][g] != never && *gaps[n][g] <= least[g];
            out.add(best ? "<td class=\"n\"><b>" : "<td class=\"n\">", shown, best ? "</b></td>" : "</td>");
        }
        out.add("</tr>\n");
    }
    out.add("</tbody></table></div>\n");
}

/// Performance profiles (Dolan, Moré, Benchmarking optimization software with performance profiles, Math. Programming 91, 2002): the share of all
/// instances whose final gap is at most so much.
inline void write_profiles(ps::io::text_writer& out, std::vector<case_rows> const& cases, std::vector<std::string> const& searches) {
    constexpr double least = 1e-4, most = 1, left = chart::left, right = chart::right, top = chart::top, bottom = chart::bottom;
    auto const x_of = [&](double gap) { return left + (right - left) * std::log(std::clamp(gap, least, most) / least) / std::log(most / least); };
    auto const y_of = [&](double share) { return bottom - (bottom - top) * share; };
    out.add("<h2 id=\"profiles\">Performance profiles</h2>\n<p>How many of all instances a search ends within a gap; those on which it does not run "
            "count as never. Higher is better.</p>\n<div class=\"curves\"><svg viewBox=\"0 0 560 300\" role=\"img\" aria-labelledby=\"profile-t "
            "profile-d\"><title id=\"profile-t\">Share of instances within a gap to the best known</title><desc id=\"profile-d\">One line for each "
            "search, by the median of its seeds.</desc>\n");
    for (int n = 0; n <= 4; ++n)
        out.add(fmt::format("<path class=\"{0}\" d=\"M{1} {2:.1f}H{3}\"/><text x=\"{4}\" y=\"{5:.1f}\" text-anchor=\"end\">{6} %</text>\n",
                            n == 0 ? "axis" : "grid", left, y_of(n / 4.0), right, left - 6, y_of(n / 4.0) + 4, 25 * n));
    for (double x = least; x <= most * 1.001; x *= 10)
        out.add(fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g} %</text>\n",
                            x_of(x), top, bottom, bottom + 16, 100 * x));
    for (auto const& name : searches) {
        std::vector<double> gaps;
        for (auto const& k : cases)
            for (auto const& s : k.of_search)
                if (s.search == name) gaps.push_back(figures_of(k, s).gap.median);
        std::sort(gaps.begin(), gaps.end());
        std::string d;
        auto const share = [&](std::size_t n) { return static_cast<double>(n) / static_cast<double>(cases.size()); };
        std::size_t done = 0;
        while (done < gaps.size() && gaps[done] <= least) ++done;
        d += fmt::format("M{:.1f} {:.1f}", x_of(least), y_of(share(done)));
        for (; done < gaps.size() && gaps[done] <= most; ++done)
            d += fmt::format("L{0:.1f} {1:.1f}L{0:.1f} {2:.1f}", x_of(gaps[done]), y_of(share(done)), y_of(share(done + 1)));
        d += fmt::format("L{:.1f} {:.1f}", right, y_of(share(done)));
        auto const number = static_cast<std::size_t>(std::find(searches.begin(), searches.end(), name) - searches.begin());
        out.add("<path class=\"median\" stroke=\"", colour(number), '"', dashes(number), " d=\"", d, "\"><title>", ps::io::html_text(name),
                "</title></path>\n");
    }
    out.add("</svg></div>\n");
}
} // namespace detail

/// Writes the page. The same comparison makes the same bytes. Throws `invalid_input` where the stream fails.
inline void write_page(std::ostream& stream, comparison const& c) {
    auto const cases = cases_of(c);
    std::vector<std::string> searches;
    double most = 10, longest = 1e-2;
    for (auto const& r : c.runs) {
        if (std::find(searches.begin(), searches.end(), r.search) == searches.end()) searches.push_back(r.search);
        most = std::max(most, static_cast<double>(r.evaluations));
        longest = std::max(longest, r.seconds);
    }
    auto const last = c.evaluations ? static_cast<double>(*c.evaluations) : most;
    ps::io::text_writer out(stream);
    out.add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
            "initial-scale=1\">\n<title>Searches compared</title>\n<style>",
            page_style, detail::curve_style, "</style>\n</head>\n<body>\n<main>\n<h1>Searches compared</h1>\n<p>",
            fmt::format("{} searches, {} instances, {} runs", searches.size(), cases.size(), c.runs.size()),
            c.evaluations ? fmt::format(" of at most {} evaluations", *c.evaluations) : std::string(),
            c.seconds ? fmt::format(" of at most {:g} s", *c.seconds) : std::string(),
            ". The gap is how much the cost of the best solution so far is above the least that is known.</p>\n");
    if (!cases.empty()) {
        detail::write_overview(out, cases, searches, last);
        detail::write_classes(out, cases, searches, last);
        detail::write_profiles(out, cases, searches);
    }
    for (std::size_t n = 0; n < cases.size(); ++n) {
        auto const& k = cases[n];
        auto const best = static_cast<double>(k.of->best);
        out.add("<h2>", ps::io::html_text(k.of->name), "</h2>\n<p>", k.of->devices > 0 ? fmt::format("{} devices, ", k.of->devices) : std::string(),
                fmt::format("{} decisions. ", k.of->decisions),
                k.of->best == infinite ? std::string("Nothing feasible is known.") : fmt::format("Best known: {:.6g} ms", 1e-9 * best),
                k.of->best == infinite || k.of->textbook == infinite || k.of->textbook == 0
                    ? std::string()
                    : fmt::format(", {:.1f} % below the textbook", 100 * (1 - best / static_cast<double>(k.of->textbook))),
                k.of->best == infinite || k.of->bound <= 0 ? std::string()
                : k.of->bound >= k.of->best                ? std::string(", proved.")
                                            : fmt::format(", {:.1f} % above the bound.", 100 * (best / static_cast<double>(k.of->bound) - 1)),
                "</p>\n<div class=\"curves\">\n");
        detail::chart(k, searches, 1e-3, c.seconds.value_or(longest), true).write(out, fmt::format("time{}", n));
        detail::chart(k, searches, 1, last, false).write(out, fmt::format("evaluations{}", n));
        out.add("</div>\n<div class=\"scroll\"><table class=\"case\"><thead><tr><th scope=\"col\">search</th>");
        for (auto const* const head : {"final gap, median", "lower quartile", "upper quartile", "best, ms", "evaluations / s", "to within 1 %",
                                       "runs that reach it", "length"})
            out.add("<th scope=\"col\" class=\"n\">", head, "</th>");
        out.add("</tr></thead><tbody>\n");
        for (auto const& s : k.of_search) {
            auto const f = figures_of(k, s);
            out.add("<tr>");
            detail::write_name(out, searches, s.search);
            out.add(fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
                                "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{} of {}</td><td class=\"n\">{}</td></tr>\n",
                                detail::percent(f.gap.median), detail::percent(f.gap.low), detail::percent(f.gap.high),
                                f.best == infinite ? std::string("infeasible") : fmt::format("{:.4g}", 1e-9 * static_cast<double>(f.best)),
                                detail::count_text(f.evaluations_per_s), detail::seconds_text(f.to_one_percent), f.reached, f.runs,
                                detail::seconds_text(f.seconds)));
        }
        out.add("</tbody></table></div>\n");
    }
    out.add("</main>\n</body>\n</html>\n");
    out.finish("the page");
}

} // namespace bench
