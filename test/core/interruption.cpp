#include <parsearch/core/interruption.hpp>

#include <stop_token>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("interruption: work goes on until its token is requested") {
    std::stop_source source;
    CHECK_NOTHROW(require_running({}));
    CHECK_NOTHROW(require_running(source.get_token()));
    source.request_stop();
    CHECK_THROWS_AS(require_running(source.get_token()), interrupted);
}
