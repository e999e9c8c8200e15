set(resident_tests)
if(WITH_CUDA)
  set(resident_tests paired_test.cpp resident_test.cpp)
endif()
add_op(
  resident
  CUDA paired.cpp resident.cpp resident_cuda.cu
  TESTS ${resident_tests})
