// Written by scripts/schema.mjs from the server's /openapi.json. Do not edit it.
export type components = {
    schemas: {
        Artifact: {
            also?: components["schemas"]["Form"][] | null;
            chart?: components["schemas"]["Chart"];
            data: string;
            /** Format: double */
            dpi?: number;
            /** Format: int64 */
            figure?: number;
            /** Format: int64 */
            height?: number;
            mime: string;
            name: string;
            source?: string;
            title?: string;
            /** Format: int64 */
            width?: number;
        };
        Artifacts: {
            /**
             * Format: int64
             * @description Of one run together; the operator's bound where it is left out
             */
            max_bytes?: number;
            /**
             * Format: int64
             * @description At most so many of one run; the operator's bound where it is left out
             */
            max_count?: number;
            /** @description Nothing */
            off?: boolean;
            /** @description Also figures that were made and never shown or saved */
            unshown?: boolean;
        };
        Axes: {
            series: components["schemas"]["Series"][] | null;
            title?: string;
            x: components["schemas"]["Axis"];
            y: components["schemas"]["Axis"];
        };
        Axis: {
            categories?: string[] | null;
            label?: string;
            scale?: string;
        };
        Cell: {
            /** @description Plots, tables and files that the code made */
            artifacts: components["schemas"]["Artifact"][];
            artifacts_dropped?: string[] | null;
            /**
             * Format: int64
             * @description Its number in the kernel's process, from 1
             */
            count: number;
            /** Format: double */
            duration_ms: number;
            /** @description What the code ended with */
            error?: components["schemas"]["CellError"];
            /**
             * Format: int64
             * @description Of code that exits, and of the kernel's process
             */
            exit_code?: number;
            /** @description What the policy names in the code */
            findings?: components["schemas"]["Finding"][] | null;
            /** @description What may help code that failed */
            hints?: components["schemas"]["Hint"][] | null;
            /** @description It was interrupted, and ended by that */
            interrupted?: boolean;
            /** @description Its attempts to reach something */
            network?: {
                [key: string]: unknown;
            }[] | null;
            /** Format: int64 */
            network_dropped?: number;
            /** @description Why there is no ordinary outcome */
            reason?: string;
            /** @description The kernel's process had ended before this cell, which found none of the state */
            restarted?: boolean;
            /** @description What ended the kernel's process */
            signal?: string;
            /** @description What cells have defined is gone: the next one has a new process */
            state_lost?: boolean;
            /**
             * @description What became of the code, as it was observed
             * @enum {string}
             */
            status: "ok" | "error" | "timeout" | "out_of_memory" | "output_limit" | "killed" | "refused" | "setup_failed" | "lost";
            stderr: string;
            stderr_truncated: boolean;
            stdout: string;
            stdout_truncated: boolean;
            /** @description The last expression's by media type; base64 where that is not text */
            value?: {
                [key: string]: string;
            };
        };
        CellError: {
            message: string;
            /** @example ZeroDivisionError */
            name: string;
            traceback?: string;
        };
        Chart: {
            axes: components["schemas"]["Axes"][] | null;
            title?: string;
            truncated?: boolean;
        };
        Command: {
            /**
             * @description The program and its arguments; or shell
             * @example [
             *       "ls",
             *       "-l"
             *     ]
             */
            argv?: string[] | null;
            /** @description Its working directory, relative to the sandbox's */
            dir?: string;
            /** @description Added to its environment */
            env?: {
                [key: string]: string;
            };
            /** @description A line for the sandbox's shell, in place of argv */
            shell?: string;
            /** @description Its input */
            stdin?: string;
            /**
             * Format: double
             * @description Wall time; the sandbox's where it is left out
             */
            timeout_seconds?: number;
        };
        Completion: {
            /**
             * Format: int64
             * @description to here
             */
            end: number;
            matches: string[];
            /**
             * Format: int64
             * @description They may take the place of the code from here, counted in code points,
             */
            start: number;
        };
        Field: {
            location: string;
            message: string;
        };
        FileEntry: {
            /** @description Where a link leads to */
            link?: string;
            /**
             * @description Permissions in octal
             * @example 0644
             */
            mode: string;
            /** Format: date-time */
            modified: string;
            /** @description Its base name */
            name: string;
            /** Format: int64 */
            size_bytes: number;
            /** @enum {string} */
            type: "file" | "directory" | "link" | "other";
        };
        Files: {
            entries: components["schemas"]["FileEntry"][];
        };
        Finding: {
            code: string;
            /** Format: int64 */
            column?: number;
            /** Format: int64 */
            end_column?: number;
            /** Format: int64 */
            end_line?: number;
            file?: string;
            language: string;
            /** Format: int64 */
            line?: number;
            reason: string;
            rule: string;
            severity: string;
        };
        Form: {
            data: string;
            mime: string;
        };
        Hint: {
            kind: string;
            subject?: string;
        };
        Inspection: {
            /** @description Documentation, signature or value; empty where nothing is known */
            text: string;
        };
        Kernel: {
            /**
             * @description Its shell
             * @example ipython
             */
            flavor?: string;
            id: string;
            /** @example python */
            language: string;
            /**
             * @description Of the interpreter
             * @example 3.13.5
             */
            version?: string;
        };
        Network: {
            /**
             * @description HOST[:PORT], *.DOMAIN[:PORT], an address or a CIDR
             * @example [
             *       "example.org:443"
             *     ]
             */
            allow?: string[] | null;
            /**
             * @description none: nothing; allow: the hosts of allow; full: all public hosts
             * @enum {string}
             */
            mode: "none" | "allow" | "full";
        };
        NewCell: {
            /**
             * @description What to execute
             * @example x = 1
             */
            code: string;
            /** @description Lines that answer the code's requests for input, in their order; then comes end-of-file */
            stdin?: string[] | null;
            /**
             * Format: double
             * @description Wall time; the sandbox's where it is left out. When it is over, the cell is interrupted, or the kernel's process ended
             * @example 60
             */
            timeout_seconds?: number;
        };
        NewKernel: {
            /** @description Its first working directory, relative to the sandbox's */
            dir?: string;
            /** @description Added to its environment */
            env?: {
                [key: string]: string;
            };
            /**
             * @description Name or alias; the sandbox's where it is left out
             * @example python
             */
            language?: string;
            /**
             * @description Installed first
             * @example [
             *       "numpy"
             *     ]
             */
            libraries?: string[] | null;
            /** @description The language's own shell where the sandbox has a richer one: Python without IPython, which opens sooner */
            plain?: boolean;
        };
        NewLibraries: {
            /**
             * @description As their ecosystem names them, with a version constraint if need be
             * @example [
             *       "numpy>=2"
             *     ]
             */
            libraries: string[];
        };
        NewSandbox: {
            /** @description What results carry beside the output; the operator's where it is left out */
            artifacts?: components["schemas"]["Artifacts"];
            /** @description Takes a sandbox for which a limit cannot be enforced, where the operator does, too */
            best_effort?: boolean;
            /** @description Added to the environment of its programs */
            env?: {
                [key: string]: string;
            };
            /** @description Name of a Python environment of the server */
            environment?: string;
            /**
             * Format: double
             * @description After how long without use it ends; never where it is left out
             */
            idle_timeout_seconds?: number;
            /** @description One that the operator allows, or project: and the name of one of the project; the server's own where it is left out */
            image?: string;
            /**
             * @description Modules that Python has imported before anything runs
             * @example [
             *       "json.tool"
             *     ]
             */
            imports?: string[] | null;
            /** @description Kept with the sandbox */
            labels?: {
                [key: string]: string;
            };
            /**
             * @description Name or alias; python where it is left out
             * @example python
             */
            language?: string;
            /**
             * @description Installed before it opens
             * @example [
             *       "numpy"
             *     ]
             */
            libraries?: string[] | null;
            /**
             * Format: double
             * @description After how long it ends, whatever runs in it; the operator's default where it is left out
             * @example 3600
             */
            lifetime_seconds?: number;
            limits?: components["schemas"]["RunLimits"];
            /** @description Nothing where it is left out */
            network?: components["schemas"]["Network"];
            /** @description Lets it be reset to what it is at first */
            resettable?: boolean;
            /** @description Values for requests to their hosts, which never enter it: a variable of each has a placeholder there. It needs a network that reaches the hosts */
            secrets?: components["schemas"]["Secret"][] | null;
            /** @description Lets code become root of the sandbox, where the operator's own sandboxes can */
            sudo?: boolean;
            /** @description Name of a template of the server, from which it has what is left out here */
            template?: string;
            /** @description What code runs as. Another one than the operator's needs an operator who lets code be root */
            user?: string;
            /** @description Volumes of the project, in which files stay */
            volumes?: components["schemas"]["VolumeMount"][] | null;
            /**
             * @description Absolute path of the working directory; the backend's where it is left out
             * @example /srv/project
             */
            workdir?: string;
            /** @description Lets code write everywhere in the sandbox, where the operator's own sandboxes can */
            writable_root?: boolean;
        };
        OneShot: {
            /** @description Its arguments */
            args?: string[] | null;
            /**
             * @description inline: the result has their content; reference: it has paths to fetch it from, for ten minutes, as far as the server has room
             * @example inline
             * @enum {string}
             */
            artifacts?: "inline" | "reference";
            /**
             * @description The program
             * @example print(1)
             */
            code: string;
            /** @description Its working directory, relative to the sandbox's */
            dir?: string;
            /** @description Added to its environment */
            env?: {
                [key: string]: string;
            };
            /** @description Name of a Python environment of the server */
            environment?: string;
            /** @description Other files of the program by their relative path. With files, it has a directory of its own */
            files?: {
                [key: string]: string | {
                    base64: string;
                };
            };
            /** @description One that the operator allows, or project: and the name of one of the project; the server's own where it is left out */
            image?: string;
            /**
             * @description Name or alias; the sandbox's where it is left out, and python where there is none yet
             * @example python
             */
            language?: string;
            /**
             * @description Installed first
             * @example [
             *       "numpy"
             *     ]
             */
            libraries?: string[] | null;
            limits?: components["schemas"]["SandboxLimits"];
            /** @description Base name of its main file, for messages */
            name?: string;
            /** @description Nothing where it is left out */
            network?: components["schemas"]["Network"];
            /** @description Its input */
            stdin?: string;
            /**
             * Format: double
             * @description Wall time, its compilation included; the sandbox's where it is left out
             * @example 60
             */
            timeout_seconds?: number;
            /** @description Volumes of the project, in which files stay */
            volumes?: components["schemas"]["VolumeMount"][] | null;
        };
        Place: {
            code: string;
            /**
             * Format: int64
             * @description Counted in code points
             */
            cursor: number;
        };
        Problem: {
            /**
             * @description What went wrong, for programs
             * @example not_found
             */
            code: string;
            /** @description What failed, why, and what to do */
            detail: string;
            /** @description What is wrong with which parts of the request */
            fields?: components["schemas"]["Field"][] | null;
            /**
             * Format: int64
             * @description The HTTP status
             */
            status: number;
            /** @description What the status means */
            title: string;
        };
        Program: {
            /** @description Its arguments */
            args?: string[] | null;
            /**
             * @description inline: the result has their content; reference: it has paths to fetch it from, for ten minutes, as far as the server has room
             * @example inline
             * @enum {string}
             */
            artifacts?: "inline" | "reference";
            /**
             * @description The program
             * @example print(1)
             */
            code: string;
            /** @description Its working directory, relative to the sandbox's */
            dir?: string;
            /** @description Added to its environment */
            env?: {
                [key: string]: string;
            };
            /** @description Other files of the program by their relative path. With files, it has a directory of its own */
            files?: {
                [key: string]: string | {
                    base64: string;
                };
            };
            /**
             * @description Name or alias; the sandbox's where it is left out, and python where there is none yet
             * @example python
             */
            language?: string;
            /**
             * @description Installed first
             * @example [
             *       "numpy"
             *     ]
             */
            libraries?: string[] | null;
            /** @description Base name of its main file, for messages */
            name?: string;
            /** @description Its input */
            stdin?: string;
            /**
             * Format: double
             * @description Wall time, its compilation included; the sandbox's where it is left out
             * @example 60
             */
            timeout_seconds?: number;
        };
        Result: {
            /** @description Plots, tables and files that the program made */
            artifacts: components["schemas"]["ResultArtifact"][];
            artifacts_dropped?: string[] | null;
            backend: string;
            /** Format: double */
            cpu_ms: number;
            /** Format: double */
            duration_ms: number;
            /**
             * Format: int64
             * @description Left out where none was observed
             */
            exit_code?: number;
            /** @description What the policy names in the code */
            findings?: components["schemas"]["Finding"][] | null;
            /** @description What may help a program that failed */
            hints?: components["schemas"]["Hint"][] | null;
            language: string;
            /** @description Its attempts to reach something */
            network?: {
                [key: string]: unknown;
            }[] | null;
            /** Format: int64 */
            network_dropped?: number;
            /** @description Controls that this server does not enforce */
            not_enforced?: string[] | null;
            /**
             * Format: int64
             * @description Of the largest process; 0 where it is not known
             */
            peak_memory_bytes: number;
            /** @description Why there is no ordinary outcome */
            reason?: string;
            sandbox_id: string;
            /**
             * @description What ended it
             * @example SIGSEGV
             */
            signal?: string;
            /**
             * @description What became of the program, as it was observed
             * @enum {string}
             */
            status: "ok" | "error" | "timeout" | "out_of_memory" | "output_limit" | "killed" | "refused" | "setup_failed" | "lost";
            stderr: string;
            stderr_truncated: boolean;
            /** @description Bytes that are not UTF-8 are U+FFFD */
            stdout: string;
            stdout_truncated: boolean;
        };
        ResultArtifact: {
            /** @description Other forms of the same thing */
            also?: components["schemas"]["ResultForm"][] | null;
            chart?: components["schemas"]["Chart"];
            /** Format: double */
            dpi?: number;
            /** Format: int64 */
            figure?: number;
            /** Format: int64 */
            height?: number;
            mime: string;
            name: string;
            /**
             * @description What made it
             * @example matplotlib
             */
            source?: string;
            title?: string;
            /** Format: int64 */
            width?: number;
        };
        ResultForm: {
            mime: string;
        };
        RunLimits: {
            /**
             * Format: double
             * @description Of the whole sandbox
             * @example 1
             */
            cpus?: number;
            /**
             * Format: int64
             * @description Of all that can be written
             * @example 1073741824
             */
            disk_bytes?: number;
            /**
             * Format: int64
             * @description Of the whole sandbox
             * @example 536870912
             */
            memory_bytes?: number;
            /**
             * Format: int64
             * @description Of standard output and error of one program together
             * @example 10485760
             */
            output_bytes?: number;
            /**
             * Format: int64
             * @description Processes and threads of the whole sandbox
             * @example 128
             */
            pids?: number;
            /**
             * Format: double
             * @description Wall time of one program, its compilation included
             * @example 60
             */
            timeout_seconds?: number;
        };
        Sandbox: {
            /** @example local */
            backend: string;
            /** Format: date-time */
            created: string;
            /**
             * Format: date-time
             * @description When it ends
             */
            deadline?: string;
            id: string;
            /**
             * Format: double
             * @description After how long without use it ends
             */
            idle_timeout_seconds?: number;
            /**
             * @description Its root filesystem; host is the server's own tool chains
             * @example host
             */
            image: string;
            labels?: {
                [key: string]: string;
            };
            /**
             * @description What code is written in that names no other language
             * @example python
             */
            language: string;
            limits: components["schemas"]["SandboxLimits"];
            /** @description Nothing runs in it until it is resumed; its deadline moves by as long */
            paused?: boolean;
            volumes?: components["schemas"]["VolumeMount"][] | null;
        };
        SandboxLimits: {
            /**
             * Format: double
             * @description Of the whole sandbox
             * @example 1
             */
            cpus?: number;
            /**
             * Format: int64
             * @description Of all that can be written
             * @example 1073741824
             */
            disk_bytes?: number;
            /**
             * Format: int64
             * @description Of the whole sandbox
             * @example 536870912
             */
            memory_bytes?: number;
            /**
             * Format: int64
             * @description Processes and threads of the whole sandbox
             * @example 128
             */
            pids?: number;
        };
        Sandboxes: {
            /** @description Where there are more, what after is to be for them */
            next?: string;
            sandboxes: components["schemas"]["Sandbox"][];
        };
        Secret: {
            /** @description Also in their bodies */
            body?: boolean;
            /**
             * @description HOST[:PORT] or *.DOMAIN[:PORT]
             * @example [
             *       "example.org:443"
             *     ]
             */
            hosts: string[];
            /**
             * @description Of the environment variable that has its placeholder
             * @example API_TOKEN
             */
            name: string;
            /** @description What takes the place of the placeholder in headers and queries of requests to the hosts */
            value: string;
        };
        Series: {
            high?: unknown;
            label?: string;
            low?: unknown;
            type: string;
            x?: unknown;
            y?: unknown;
            z?: unknown;
        };
        Variable: {
            name: string;
            type: string;
            value: string;
        };
        Variables: {
            variables: components["schemas"]["Variable"][];
        };
        VolumeMount: {
            /**
             * @description Of a volume of the project
             * @example cache
             */
            name: string;
            /**
             * @description Absolute, below /sandbox or a new one
             * @example /sandbox/cache
             */
            path: string;
            /** @description Code can read, and not write */
            read_only?: boolean;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
};
