set(resident_tests)
if(WITH_CUDA)
  set(resident_tests resident_test.cpp)
endif()
add_op(
  resident
  CUDA resident.cpp resident_cuda.cu
  TESTS ${resident_tests})
