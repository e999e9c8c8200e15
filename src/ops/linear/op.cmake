add_op(
  linear
  SOURCES linear.cpp
  TESTS linear_test.cpp)
