# sluice_room(NAME [DEPENDS room...] [LIBS target...])
#
# One folder under src/ is one room. From its files, found by name:
#   *.cc            -> sluice_NAME        the room's library (main.cc is left out, and preload.cc, which is for other programs)
#   *.cu            -> sluice_NAME_cuda   compiled by nvcc, runs on a GPU
#                      sluice_NAME_simt   the same source compiled by the host compiler against device/simt (tests only)
#   *_test.cc       -> sluice_NAME_test     unit tests, linked with the SIMT shim (runs in CI, under sanitizers); for
#                      ctest a test NAME/FILE for each file
#                      sluice_gputest     the tests that use a GPU, of all rooms, and all of the engine's, linked with CUDA,
#                      for a machine that has one (sluice_gpu_tests() below)
#   *_bench.cc      -> sluice_NAME_bench    Google Benchmark micro-benches
# Tests are compiled with less optimisation than what they test: their code is large, runs once, and took half of a build.
# Code that includes CUDA's headers lives in .cu files; everything else sees plain headers.
set(SLUICE_SIMT_INCLUDE ${CMAKE_SOURCE_DIR}/src/device/simt)

function(sluice_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS *.cu)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(benches ${sources})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "((_test|_bench|_fuzz)|/(main|preload))\\.cc$")
  set(shim ${sources})
  list(FILTER shim INCLUDE REGEX "/simt/")
  list(FILTER sources EXCLUDE REGEX "/simt/")

  if(sources)
    add_library(sluice_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(sluice_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(sluice_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(sluice_${name} ${scope} tl::expected ${ROOM_LIBS})

  set(rooms ${name})
  foreach(dep ${ROOM_DEPENDS})
    target_link_libraries(sluice_${name} ${scope} sluice_${dep})
    list(APPEND rooms ${SLUICE_ROOMS_${dep}})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  set(SLUICE_ROOMS_${name} ${rooms} CACHE INTERNAL "")

  if(kernels)
    add_library(sluice_${name}_simt STATIC ${kernels} ${shim})
    set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
    target_compile_definitions(sluice_${name}_simt PRIVATE SLUICE_SIMT=1)
    target_include_directories(sluice_${name}_simt BEFORE PRIVATE ${SLUICE_SIMT_INCLUDE})
    target_link_libraries(sluice_${name}_simt PUBLIC sluice_${name})
    if(SLUICE_CUDA)
      sluice_cuda_library(sluice_${name}_cuda ${kernels})
      target_link_libraries(sluice_${name}_cuda PUBLIC sluice_${name})
    endif()
  endif()

  if(NOT SLUICE_TESTS)
    return()
  endif()
  if(tests)
    sluice_room_executable(sluice_${name}_test simt "${tests}" ${rooms})
    target_link_libraries(sluice_${name}_test PRIVATE sluice_test_support)
    target_compile_options(sluice_${name}_test PRIVATE $<IF:$<BOOL:${SLUICE_SANITIZE}>,-O0,-O1>)
    sluice_list_tests(${name})
    list(FILTER tests EXCLUDE REGEX "/simt/")  # those test the shim itself, or need its faults
    if(tests AND SLUICE_CUDA AND (kernels OR name STREQUAL "engine"))  # rooms whose tests reach a GPU
      foreach(test ${tests})  # those that include tests/support/gpu.h, or a header that does
        file(STRINGS ${test} uses_gpu REGEX "support/gpu\\.h|_trial_test\\.h")
        if(uses_gpu OR name STREQUAL "engine")
          set_property(GLOBAL APPEND PROPERTY SLUICE_GPU_TESTS ${test})
        endif()
      endforeach()
      set_property(GLOBAL APPEND PROPERTY SLUICE_GPU_TEST_ROOMS ${rooms})
    endif()
  endif()
  if(benches)
    sluice_room_executable(sluice_${name}_bench cuda "${benches}" ${rooms})
    target_link_libraries(sluice_${name}_bench PRIVATE benchmark::benchmark benchmark::benchmark_main)
    set_target_properties(sluice_${name}_bench PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# One program of the GPU tests of all rooms; after the last room. An ordinary build leaves it out.
function(sluice_gpu_tests)
  get_property(tests GLOBAL PROPERTY SLUICE_GPU_TESTS)
  get_property(rooms GLOBAL PROPERTY SLUICE_GPU_TEST_ROOMS)
  if(tests)
    list(REMOVE_DUPLICATES rooms)
    sluice_room_executable(sluice_gputest cuda "${tests}" ${rooms})
    target_link_libraries(sluice_gputest PRIVATE sluice_test_support)
    set_target_properties(sluice_gputest PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# The room's tests for ctest, by file: listed when their program is linked (ListTests.cmake).
function(sluice_list_tests name)
  set(program sluice_${name}_test)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${program}_files.cmake)
  add_custom_command(
    TARGET ${program} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D OUT=${list} -D PREFIX=${name}
            -D SOURCE=${CMAKE_CURRENT_SOURCE_DIR} -D BUILD=${CMAKE_BINARY_DIR} -D DIRECTORY=${CMAKE_SOURCE_DIR}
            -P ${CMAKE_SOURCE_DIR}/cmake/ListTests.cmake
    BYPRODUCTS ${list}
    VERBATIM)
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${program}_include.cmake)
  file(WRITE ${include} "if(EXISTS [==[${list}]==])\n  include([==[${list}]==])\nelse()\n"
                        "  add_test(${name}_is_not_built ${program}_is_not_built)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

# An executable over `rooms`, with the GPU code of each compiled for `flavour` (cuda, or simt where there is no nvcc).
function(sluice_room_executable target flavour sources)
  if(NOT SLUICE_CUDA)
    set(flavour simt)
  endif()
  add_executable(${target} ${sources})
  target_compile_definitions(${target} PRIVATE SLUICE_GPU_FLAVOUR="${flavour}")
  set(libs)
  foreach(room ${ARGN})
    if(TARGET sluice_${room}_${flavour})
      list(APPEND libs sluice_${room}_${flavour})
    endif()
  endforeach()
  foreach(room ${ARGN})
    get_target_property(type sluice_${room} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND libs -Wl,--whole-archive sluice_${room} -Wl,--no-whole-archive)
    else()
      list(APPEND libs sluice_${room})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${libs} -Wl,--end-group)
endfunction()
