#include <iostream>

#include <parsearch/parsearch.hpp>

int main() { std::cout << "parsearch " << parsearch::version << '\n'; }
