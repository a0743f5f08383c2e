#include <iostream>
#include <sstream>

#include <parsearch/io/onnx.hpp>

int main() {
    std::istringstream nothing;
    try {
        (void)parsearch::io::read_onnx(nothing, "nothing");
    } catch (parsearch::invalid_input const& e) {
        std::cout << e.what() << '\n';
        return 0;
    }
    return 1;
}
