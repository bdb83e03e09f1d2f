# cmake -D PROGRAM=... -D OUT=... -D SOURCE=... -D PREFIX=... -P ListTests.cmake
#
# Writes OUT, which ctest includes: a test for each source file of a GoogleTest program, named PREFIX/FILE without _test.cc,
# that runs what the file has. Asks the program itself, so that none of its tests is left out; a process for each file and
# not for each test, because each starts DPDK's EAL (0.2 s) and what test suites share.
execute_process(COMMAND "${PROGRAM}" --gtest_list_tests "--gtest_output=json:${OUT}.json"
                OUTPUT_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  file(REMOVE "${OUT}")
  message(FATAL_ERROR "${PROGRAM} does not list its tests (${status})")
endif()
file(READ "${OUT}.json" list)
file(REMOVE "${OUT}.json")

set(files)
string(JSON suites LENGTH "${list}" testsuites)
math(EXPR last_suite "${suites} - 1")
foreach(s RANGE ${last_suite})
  string(JSON suite GET "${list}" testsuites ${s})
  string(JSON suite_name GET "${suite}" name)
  string(JSON tests LENGTH "${suite}" testsuite)
  math(EXPR last_test "${tests} - 1")
  foreach(t RANGE ${last_test})
    string(JSON test_name GET "${suite}" testsuite ${t} name)
    string(JSON file GET "${suite}" testsuite ${t} file)
    get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${BUILD}")
    file(RELATIVE_PATH file "${SOURCE}" "${file}")
    string(REGEX REPLACE "_test\\.(cc|h)$" "" file "${file}")
    list(APPEND files "${file}")
    string(APPEND filter_${file} ":${suite_name}.${test_name}")
  endforeach()
endforeach()

list(REMOVE_DUPLICATES files)
set(text)
foreach(file ${files})
  string(SUBSTRING "${filter_${file}}" 1 -1 filter)
  string(APPEND text "add_test([==[${PREFIX}/${file}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${filter}]==])\n"
                     "set_tests_properties([==[${PREFIX}/${file}]==] PROPERTIES WORKING_DIRECTORY [==[${DIRECTORY}]==])\n")
endforeach()
file(WRITE "${OUT}" "${text}")
