#pragma once
/// A result, or the reason why there is none.

#include <optional>
#include <string>
#include <utility>

#include <parsearch/core/error.hpp>

namespace parsearch::rewrite {

/// Why something can not be rewritten. Nothing is wrong with the input: a search tries another place.
struct refusal {
    std::string why;
};
template <class... Parts> [[nodiscard]] refusal refused(Parts const&... parts) { return {text(parts...)}; }

/// A `T`, or why there is none.
template <class T> class outcome {
  public:
    outcome(T value) : value_(std::move(value)) {}           // NOLINT: conversion is the point
    outcome(refusal reason) : why_(std::move(reason.why)) {} // NOLINT
    [[nodiscard]] explicit operator bool() const noexcept { return value_.has_value(); }
    /// The result. Throws `std::bad_optional_access` where there is none.
    [[nodiscard]] T const& operator*() const& { return value_.value(); }
    [[nodiscard]] T&& operator*() && { return std::move(value_).value(); }
    [[nodiscard]] T const* operator->() const { return &value_.value(); }
    /// Why there is none; empty where there is one.
    [[nodiscard]] std::string const& why() const noexcept { return why_; }

  private:
    std::optional<T> value_{};
    std::string why_{};
};

/// What a rewritten model is for. Some rules keep the outputs but not what training does to the weights.
enum class purpose : unsigned char { training, inference };

} // namespace parsearch::rewrite
