-- Which admin runs a periodic job. No time stands here: whoever waits takes the lease when `beat` has not
-- changed for so long by its own clock, so clocks that differ do not matter. `term` counts the takeovers:
-- what a holder writes, it writes only while its term still stands here.
CREATE TABLE job_lease (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    term BIGINT NOT NULL,
    beat BIGINT NOT NULL
);
