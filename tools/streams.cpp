#include "streams.hpp"

#include <csignal>
#include <cstddef>

#include <fcntl.h>
#include <unistd.h>

namespace tools {

void secure_streams() {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN); // a file that grows too large fails to be written
    // Each gets the lowest number that is free. Read only: what is written there fails, as on a stream that is closed.
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
        if (fcntl(stream, F_GETFD) < 0) (void)open("/dev/null", O_RDONLY);
}

std::string harmless(std::string text) {
    std::size_t to = 0;
    for (std::size_t from = 0; from < text.size(); ++from) {
        auto const byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
        bool const second_set = byte(from) == 0xc2 && byte(from + 1) >= 0x80 && byte(from + 1) < 0xa0; // of UTF-8
        bool const control = (byte(from) < 0x20 && text[from] != '\n') || byte(from) == 0x7f || second_set;
        text[to++] = control ? '?' : text[from];
        from += second_set;
    }
    text.resize(to);
    return text;
}

} // namespace tools
