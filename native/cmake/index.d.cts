/** The folder with allstopConfig.cmake, for `find_package(allstop CONFIG)`. */
declare const cmake: string;
export = cmake;
