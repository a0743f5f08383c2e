#pragma once
/// Regular topologies of single-device nodes.

#include <parsearch/topology/fat_tree.hpp>
#include <parsearch/topology/fully_connected.hpp>
#include <parsearch/topology/torus.hpp>
