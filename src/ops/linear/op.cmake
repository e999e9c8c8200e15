add_op(
  linear
  SOURCES fp8_products.cpp linear.cpp
  TESTS fp8_linear_test.cpp linear_test.cpp)
