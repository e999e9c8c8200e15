#include <iostream>

#include "bloomery.h"

int main(int argc, char** argv) {
  return bloomery::run_bloomery({argv + 1, argv + argc}, std::cout, std::cerr);
}
